import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyCharacter } from '../../test/helpers/any-character.ts'
import type { Notification } from '../notifications.ts'
import { encodeSignal, merged, type Signal, signalDecoder } from './committed.ts'

const quiet: Signal = { notifications: [], closings: [], wroteAudit: false }

/** An offer with texts of the maximum length, made of one character. */
function largestOffer(character: string): Notification {
  const text = character.repeat(Math.floor(500 / character.length))
  const at = '2026-01-02T03:04:05.678Z'
  const ids = ['offer_id', 'from_actor_id', 'from_account_id', 'to_account_id', 'to_actor_id', 'scope_id']
  return {
    account_id: randomUUID(),
    method: 'role_grant_offer_declined',
    params: {
      offer: {
        ...Object.fromEntries(ids.map((name) => [name, randomUUID()])),
        role: 'r'.repeat(128),
        scope_kind: 's'.repeat(128),
        message: text,
        created_at: at,
        expires_at: at,
        grant_expires_at: at,
        accepted_at: null,
        declined_at: at,
        decline_reason: text,
        retracted_at: null,
        superseded_at: null,
        resulting_role_grant_id: null,
      },
    },
  } as Notification
}

/** What a node decodes from payloads; asserts that each fits into one NOTIFY. */
function heardBy(node: string, payloads: string[]): Signal[] {
  const heard: Signal[] = []
  const decode = signalDecoder(node, (signal) => heard.push(signal))
  for (const payload of payloads) {
    expect(Buffer.byteLength(payload)).toBeLessThanOrEqual(7900)
    decode(payload)
  }
  return heard
}

describe('a signal', () => {
  it('arrives whole and in order, however large and whatever its texts hold', () => {
    const text = fc.string({ unit: anyCharacter })
    const revoke = (account_id: string, reason: string): Notification<'role_grant_revoke'> => ({
      account_id,
      method: 'role_grant_revoke',
      params: { role_grant_id: account_id, role: reason, scope_id: null, reason },
    })
    const someSignal: fc.Arbitrary<Signal> = fc.record({
      notifications: fc.array(fc.tuple(fc.uuid(), text).map(([id, reason]) => revoke(id, reason))),
      closings: fc.array(fc.record({ kind: fc.constant('account' as const), account_id: text })),
      wroteAudit: fc.boolean(),
      cleared: fc.option(fc.array(text, { minLength: 1 }), { nil: undefined }),
    })
    fc.assert(
      fc.property(fc.array(someSignal, { maxLength: 4 }), (signals) => {
        const payloads = signals.flatMap((signal) => encodeSignal('a1', signal))
        expect(heardBy('b2', payloads)).toEqual(JSON.parse(JSON.stringify(signals)))
      }),
      { numRuns: 50 },
    )
  })

  it('has the keys of own notifications as they were sent', () => {
    const noted = (key: string) =>
      ({ account_id: 'x', method: 'noted', params: { before: 1, [key]: 2 } }) as unknown as Notification
    const signals = ['\\', 'ü', '"', 'n'].map((key) => ({ ...quiet, notifications: [noted(key)] }))
    const payloads = signals.flatMap((signal) => encodeSignal('a1', signal))
    expect(heardBy('b2', payloads)).toEqual(signals)
  })

  it('with the largest offers is sent in pieces that fit', () => {
    for (const character of ['\u0001', 'ü', '漢', '😀', '"']) {
      const signal = { ...quiet, notifications: Array.from({ length: 3 }, () => largestOffer(character)) }
      expect(heardBy('b2', encodeSignal('a1', signal))).toEqual([signal])
    }
    const one = { ...quiet, notifications: [largestOffer('\u0001')] }
    expect(encodeSignal('a1', one).length).toBe(1)
  })

  it('in equal pieces is sent as unequal payloads, which PostgreSQL would send once', () => {
    const closings = [{ kind: 'account' as const, account_id: 'x'.repeat(50_000) }]
    const payloads = encodeSignal('a1', { ...quiet, closings })
    expect(new Set(payloads).size).toBe(payloads.length)
    expect(heardBy('b2', payloads)).toEqual([{ ...quiet, closings }])
  })

  it('of the node itself is not heard; one without all its pieces, or that is none, is dropped', () => {
    const large = { ...quiet, closings: [{ kind: 'account' as const, account_id: 'x'.repeat(20_000) }] }
    const small = { ...quiet, wroteAudit: true }
    const pieces = encodeSignal('a1', large)
    const [whole] = encodeSignal('a1', small) as [string]
    expect(heardBy('a1', [...pieces, whole])).toEqual([])
    expect(heardBy('b2', [...pieces.slice(1), whole])).toEqual([small])
    expect(heardBy('b2', [...pieces.slice(0, 1), ...pieces.slice(2), whole])).toEqual([small])
    expect(heardBy('b2', [...pieces.slice(0, -1), ...pieces])).toEqual([large])
    const junk = [
      '',
      'x',
      'v1 a1 0/1 {',
      'v1 a1 0/1 null',
      'v1 a1 0/1 [1,2,3]',
      'v1 a1 5/3 x',
      'v1 a1 0/99999999999 x',
      'v1 a1 -1/1 []',
      // The format of another version.
      whole.replace('v1', 'v2'),
    ]
    expect(heardBy('b2', [...junk, whole])).toEqual([small])
  })

  it('of several commits is one: kinds keep their order', () => {
    const [one, two] = [largestOffer('a'), largestOffer('b')]
    const a = merged(undefined, { ...quiet, notifications: [one] })
    expect(merged(a, { ...quiet, notifications: [two], wroteAudit: true })).toEqual({
      notifications: [one, two],
      closings: [],
      wroteAudit: true,
    })
    expect(merged(merged(undefined, { ...quiet, wroteAudit: true }), quiet).wroteAudit).toBe(true)
  })
})
