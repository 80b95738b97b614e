import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { clearAudit } from '../../test/helpers/audit-rows.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { call, rpc } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { mutation } from '../core/declare.ts'
import type { Work } from '../core/mutate.ts'
import { sql } from '../db/db.ts'
import type { AuditSubject } from './audit.ts'

/** The two ids of a pair belong to one account, whoever gives them. */

let work: (tools: Work) => unknown = () => {}
const actions = {
  act: mutation({
    doc: 'Does what the test says.',
    auth: { account: 'required', actor: 'required' },
    event: 'cell_delete',
    output: z.null(),
    async handler(_input, tools) {
      await work(tools)
      return null
    },
  }),
}

const cell_id = '00000000-0000-4000-8000-000000000001'
const captured = capturedLog()
const sent: string[] = []
const test = await serviceForFile({ actions, log: captured.log, onStatement: (text) => sent.push(text) })
const [ada, bob] = await Promise.all([test.account(), test.account()])
beforeEach(() => clearAudit(test))

const pairs = async () =>
  (
    await test.service.app.db.rows<AuditSubject>(sql`
      select actor_id, account_id, target_actor_id, target_account_id from audit_entries() order by written`)
  ).map((row) => Object.values(row))
const isFlawed = async (run: () => Promise<unknown>) => {
  const { audit } = test.service.app
  const [flaws, failures] = [audit.flaws, audit.failures]
  await run()
  return [audit.flaws - flaws, audit.failures - failures]
}
/** Calls the method; returns the pairs of its rows and how many flaws were counted. */
async function written(own: Partial<AuditSubject> | undefined) {
  work = ({ audit }) => audit('cell_delete', { cell_id }, own)
  const [flaws, failures] = await isFlawed(() => rpc(test.url, call('act'), { cookie: ada.cookie }))
  expect(failures).toBe(0)
  return { flaws, pairs: await pairs() }
}

describe('a subject that a handler names', () => {
  it.each<[what: string, own: () => Partial<AuditSubject>, pair: () => unknown[], flaws: number]>([
    [
      'of two accounts gets the account of the actor',
      () => ({ actor_id: bob.actor_id, account_id: ada.id }),
      () => [bob.actor_id, bob.id, null, null],
      1,
    ],
    [
      'with a target of two accounts, likewise',
      () => ({ target_actor_id: bob.actor_id, target_account_id: ada.id }),
      () => [ada.actor_id, ada.id, bob.actor_id, bob.id],
      1,
    ],
    [
      'with only another actor gets that actor’s account',
      () => ({ actor_id: bob.actor_id }),
      () => [bob.actor_id, bob.id, null, null],
      0,
    ],
    [
      'with only another account has no actor',
      () => ({ account_id: bob.id }),
      () => [null, bob.id, null, null],
      0,
    ],
    [
      'with only a target actor gets its account',
      () => ({ target_actor_id: bob.actor_id }),
      () => [ada.actor_id, ada.id, bob.actor_id, bob.id],
      0,
    ],
    [
      'with a target account only stays so',
      () => ({ target_account_id: bob.id }),
      () => [ada.actor_id, ada.id, null, bob.id],
      0,
    ],
    [
      'with the caller’s own account keeps the actor',
      () => ({ account_id: ada.id }),
      () => [ada.actor_id, ada.id, null, null],
      0,
    ],
    [
      'with an actor that is not stored stays as it is',
      () => ({ target_actor_id: cell_id, target_account_id: bob.id }),
      () => [ada.actor_id, ada.id, cell_id, bob.id],
      0,
    ],
  ])('%s', async (_what, own, pair, flaws) => {
    expect(await written(own())).toEqual({ flaws, pairs: [pair()] })
    const said = captured.lines().findLast(({ flaw }) => flaw !== undefined)
    if (flaws > 0)
      expect(said).toMatchObject({
        level: 'error',
        event_type: 'cell_delete',
        flaw: 'the account is not the one of the actor',
      })
  })

  it('is corrected in rows of failure, too', async () => {
    work = ({ audit }) => {
      audit('cell_delete', { cell_id }, { target_actor_id: bob.actor_id, target_account_id: ada.id })
      throw new Error('unexpected')
    }
    const run = () => rpc(test.url, call('act'), { cookie: ada.cookie })
    expect(await isFlawed(run)).toEqual([1, 0])
    expect(await pairs()).toEqual([[ada.actor_id, ada.id, bob.actor_id, bob.id]])
  })

  it('keeps the ids of purged actors and finds those made just now', async () => {
    const gone = await test.account()
    await test.service.operations.deleteAccount({ account_id: gone.id }, { via: 'testing' })
    await clearAudit(test)
    const target = { target_actor_id: gone.actor_id, target_account_id: gone.id }
    expect(await written(target)).toMatchObject({
      flaws: 0,
      pairs: [[ada.actor_id, ada.id, gone.actor_id, gone.id]],
    })
    await test.service.operations.purgeAccount({ account_id: gone.id, confirm: true }, { via: 'testing' })
    await clearAudit(test)
    expect(await written(target)).toMatchObject({
      flaws: 0,
      pairs: [[ada.actor_id, ada.id, gone.actor_id, gone.id]],
    })
  })
})

describe('an operator call or transaction that names for whom it acts', () => {
  it.each<
    [
      what: string,
      own: () => { actor_id?: string; account_id?: string },
      pair: () => unknown[],
      flaws: number,
    ]
  >([
    ['two accounts', () => ({ actor_id: ada.actor_id, account_id: bob.id }), () => [ada.actor_id, ada.id], 1],
    ['an actor', () => ({ actor_id: ada.actor_id }), () => [ada.actor_id, ada.id], 0],
    ['an account', () => ({ account_id: ada.id }), () => [null, ada.id], 0],
  ])('by %s', async (_what, own, pair, flaws) => {
    const operator = { via: 'testing', ...own() }
    const input = { actor_id: bob.actor_id, name: `Bob ${_what}` }
    expect(await isFlawed(() => test.service.operations.renameActor(input, operator))).toEqual([flaws, 0])
    expect(await pairs()).toEqual([[...pair(), bob.actor_id, bob.id]])
    await clearAudit(test)
    const by = { event: 'cell_delete' as const, ...operator }
    const record = async ({ audit }: Work) => audit('cell_delete', { cell_id })
    expect(await isFlawed(() => test.service.transaction(by, record))).toEqual([flaws, 0])
    expect(await pairs()).toEqual([[...pair(), null, null]])
  })
})

it('rows that name only the caller are written without looking up accounts', async () => {
  sent.length = 0
  await ada.client.cell_create({ data: {} })
  expect(sent.flatMap((text) => text.match(/audit_write\w*/g) ?? [])).toEqual(['audit_write'])
})
