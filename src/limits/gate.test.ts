import pg from 'pg'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { type SendOptions, send } from '../../test/helpers/account-routes.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { onLocalhost } from '../../test/helpers/passkeys.ts'
import { firstStep, guarded, secondStep } from '../../test/helpers/totp.ts'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { inWork, noteRoute } from '../observe/work.ts'
import { type TestAccount, type TestOptions, type TestService, testService } from '../testing/index.ts'
import { Gate } from './gate.ts'

describe('the gate', () => {
  it('runs up to `perCaller` calls of a caller, then the others in order of arrival; other callers run at once', async () => {
    const gate = new Gate({ perCaller: 2, reads: 5 })
    const begun: string[] = []
    const ends = new Map<string, () => void>()
    const begin = (caller: string, name: string) =>
      gate.run(caller, async () => {
        begun.push(name)
        await new Promise<void>((resolve) => ends.set(name, resolve))
      })
    const end = async (name: string, call: Promise<void>) => {
      ends.get(name)?.()
      await call
    }
    const calls = ['a1', 'a2', 'a3', 'a4'].map((name) => begin('a', name))
    const other = begin('b', 'b1')
    expect(begun).toEqual(['a1', 'a2', 'b1'])
    await end('a2', calls[1] as Promise<void>)
    await expect.poll(() => begun).toEqual(['a1', 'a2', 'b1', 'a3'])
    await end('a1', calls[0] as Promise<void>)
    await expect.poll(() => begun.at(-1)).toBe('a4')
    await end('a3', calls[2] as Promise<void>)
    await end('a4', calls[3] as Promise<void>)
    await end('b1', other)
    // The gate is as at the beginning.
    const again = ['a5', 'a6', 'a7'].map((name) => begin('a', name))
    expect(begun.slice(-2)).toEqual(['a5', 'a6'])
    await end('a5', again[0] as Promise<void>)
    await end('a6', again[1] as Promise<void>)
    await expect.poll(() => begun.at(-1)).toBe('a7')
    await end('a7', again[2] as Promise<void>)
  })

  it('frees a place however its holder ends', async () => {
    const gate = new Gate({ perCaller: 1, reads: 5 })
    for (let n = 0; n < 3; n++)
      await expect(
        gate.run('a', async () => {
          throw new Error('own')
        }),
      ).rejects.toThrow('own')
    expect(await gate.run('a', async () => 'in')).toBe('in')
  })

  it('admits nested work, but makes what outlives its work wait like anything else', async () => {
    const gate = new Gate({ perCaller: 1, reads: 5 })
    let late: (() => Promise<string>) | undefined
    const inner = await gate.run('a', async () => {
      late = await gate.run('b', async () => async () => await gate.run('a', async () => 'late'))
      return await gate.read('a', async () => await gate.run('a', async () => 'inner'))
    })
    expect([inner, await late?.()]).toEqual(['inner', 'late'])
  })

  it('leaves a place for the reads of others, and callers take turns for it', async () => {
    const gate = new Gate({ perCaller: null, reads: 2 })
    const begun: string[] = []
    const ends = new Map<string, () => void>()
    const read = (name: string) =>
      gate.read(name.charAt(0), async () => {
        begun.push(name)
        await new Promise<void>((resolve) => ends.set(name, resolve))
      })
    const calls = ['a1', 'a2', 'a3', 'b1', 'c1'].map(read)
    expect(begun).toEqual(['a1', 'b1'])
    expect(await gate.run('z', async () => 'a transaction needs no place for reads')).toContain('no place')
    ends.get('b1')?.()
    await expect.poll(() => begun).toEqual(['a1', 'b1', 'c1'])
    ends.get('a1')?.()
    await expect.poll(() => begun).toEqual(['a1', 'b1', 'c1', 'a2'])
    ends.get('c1')?.()
    await calls[4]
    calls.push(read('d1'))
    expect(begun.at(-1)).toBe('d1')
    for (const name of ['a2', 'd1']) ends.get(name)?.()
    await expect.poll(() => begun.at(-1)).toBe('a3')
    ends.get('a3')?.()
    await Promise.all(calls)
  })

  it('lets a transaction in that waited behind a read, when that read has waited too long', async () => {
    vi.useFakeTimers()
    try {
      const gate = new Gate({ perCaller: 3, reads: 2 })
      let end = () => {}
      const first = gate.read('a', () => new Promise<void>((resolve) => (end = resolve)))
      const read = reasonOf(gate.read('a', async () => {}))
      await vi.advanceTimersByTimeAsync(1_000)
      let isIn = false
      const transaction = gate.run('a', async () => {
        isIn = true
      })
      await vi.advanceTimersByTimeAsync(3_999)
      expect(isIn).toBe(false)
      await vi.advanceTimersByTimeAsync(1)
      expect([await read, isIn]).toEqual(['service_unavailable', true])
      end()
      await Promise.all([first, transaction])
    } finally {
      vi.useRealTimers()
    }
  })

  it('gives a place that a read frees to a transaction of the same caller and to the read whose turn it is', async () => {
    const gate = new Gate({ perCaller: 1, reads: 2 })
    const begun: string[] = []
    const ends = new Map<string, () => void>()
    const work = (name: string) => async () => {
      begun.push(name)
      await new Promise<void>((resolve) => ends.set(name, resolve))
    }
    const calls = [
      gate.read('a', work('a1')),
      gate.read('b', work('b1')),
      gate.run('a', work('a2')),
      gate.read('c', work('c1')),
      gate.read('d', work('d1')),
      gate.read('a', work('a3')),
    ]
    expect(begun).toEqual(['a1', 'b1'])
    ends.get('a1')?.()
    await expect.poll(() => begun).toEqual(['a1', 'b1', 'a2', 'c1'])
    ends.get('a2')?.()
    ends.get('c1')?.()
    await expect.poll(() => begun).toEqual(['a1', 'b1', 'a2', 'c1', 'd1'])
    ends.get('b1')?.()
    await expect.poll(() => begun.at(-1)).toBe('a3')
    for (const name of ['d1', 'a3']) ends.get(name)?.()
    await Promise.all(calls)
  })

  it('lets one route at a time pass the methods of a caller, and then the first of these in', async () => {
    const gate = new Gate({ perCaller: 1, reads: 5 })
    const begun: string[] = []
    const ends = new Map<string, () => void>()
    const work = (name: string) => async () => {
      begun.push(name)
      await new Promise<void>((resolve) => ends.set(name, resolve))
    }
    const route = (name: string) =>
      inWork({ site: name, fields: {} }, () => {
        noteRoute()
        return gate.run('a', work(name))
      })
    const methods = [gate.run('a', work('method 0')), gate.run('a', work('method 1'))]
    const more = Array.from({ length: 499 }, () => gate.run('a', async () => {}))
    const routes = [route('route 1'), route('route 2')]
    expect(begun).toEqual(['method 0', 'route 1'])
    ends.get('route 1')?.()
    await expect.poll(() => begun).toEqual(['method 0', 'route 1', 'route 2'])
    ends.get('method 0')?.()
    await methods[0]
    routes.push(route('route 3'))
    expect(begun).toEqual(['method 0', 'route 1', 'route 2'])
    ends.get('route 2')?.()
    await expect.poll(() => begun.slice(3)).toEqual(['method 1', 'route 3'])
    for (const name of ['method 1', 'route 3']) ends.get(name)?.()
    await Promise.all([...methods, ...routes, ...more])
  })

  it('refuses a caller that has very many calls waiting', async () => {
    const gate = new Gate({ perCaller: 1, reads: 5 })
    let end = () => {}
    const first = gate.run('a', () => new Promise<void>((resolve) => (end = resolve)))
    const waiting = Array.from({ length: 501 }, () => reasonOf(gate.run('a', async () => {})))
    expect(await waiting[500]).toBe('busy')
    expect(await gate.run('b', async () => 'in')).toBe('in')
    end()
    await first
    expect(new Set(await Promise.all(waiting.slice(0, 500)))).toEqual(new Set(['ok']))
  })
})

describe('one caller', () => {
  let test: TestService
  afterEach(() => test.close())
  const service = async (options: TestOptions = {}) => {
    test = await testService(options)
    return await Promise.all([test.account(), test.account()])
  }
  /** Locks rows until the returned function is called. */
  const hold = async (table: 'account' | 'cell' | 'sign_in_flow', id?: string) => {
    const holder = new pg.Client({ connectionString: test.databaseUrl })
    await holder.connect()
    await holder.query('begin')
    await holder.query(`select from ${table} where id::text = coalesce($1, id::text) for update`, [id])
    return () => holder.end()
  }
  const blocked = async () =>
    (
      await test.service.app.db.first<{ n: number }>(sql`
        select count(*)::int as n from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`)
    )?.n

  it('whose calls all wait for a lock takes no connection from others', async () => {
    const [ada, bob] = await service()
    const { cell } = await ada.client.cell_create({ data: {} })
    const release = await hold('cell', cell.id)
    const calls = Array.from({ length: 12 }, (_, n) =>
      reasonOf(ada.client.cell_update({ cell_id: cell.id, data: { n } })),
    )
    await expect.poll(blocked).toBe(8)
    // A call that finds no connection waits five seconds for one, and is refused then.
    expect(await reasonOf(bob.client.cell_create({ data: {} }))).toBe('ok')
    expect((await bob.client.cell_list()).cells).toHaveLength(1)
    expect((await test.client().cell_list()).cells).toHaveLength(0)
    await release()
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['ok']))
  })

  it.each<[string, (ada: TestAccount) => SendOptions]>([
    ['POST /login', ({ username, password }) => ({ body: { username, password } })],
    ['POST /passkey_begin', ({ cookie }) => ({ cookie, body: {} })],
    ['POST /reauthenticate', ({ cookie, password }) => ({ cookie, body: { password } })],
  ])('takes none from others by %s either', async (route, sent) => {
    const [ada, bob] = await service({ ...onLocalhost, limit_login_account: 'off' })
    const release = await hold('account', ada.id)
    const calls = Array.from({ length: 12 }, () => send(test, route, sent(ada)))
    await expect.poll(blocked).toBe(8)
    expect(await reasonOf(bob.client.cell_create({ data: {} }))).toBe('ok')
    await release()
    for (const { status } of await Promise.all(calls)) expect(status).toBeLessThan(500)
  })

  it('takes none from others by the second step of a sign-in that is being ended', async () => {
    const [, bob] = await service()
    const flow = (await firstStep(test, await guarded(test))).cookie
    const release = await hold('sign_in_flow')
    const calls = Array.from({ length: 12 }, () => secondStep(test, flow, { totp: '000000' }))
    await expect.poll(blocked).toBe(8)
    expect(await reasonOf(bob.client.cell_create({ data: {} }))).toBe('ok')
    await release()
    for (const { status } of await Promise.all(calls)) expect(status).toBeLessThan(500)
  })

  it('signs in, is told its many roles, changes its password and signs out while its own methods hold and await all its connections', async () => {
    const [ada] = await service()
    const { cell } = await ada.client.cell_create({ data: {} })
    const release = await hold('cell', cell.id)
    const calls = Array.from({ length: 12 }, (_, n) =>
      reasonOf(ada.client.cell_update({ cell_id: cell.id, data: { n } })),
    )
    await expect.poll(blocked).toBe(8)
    await test.service.app.db.run(sql`
      insert into role_grant (actor_id, role, scope_kind, scope_id)
      select ${ada.actor_id}::uuid, 'member', 'team', gen_random_uuid() from generate_series(1, 100)`)
    const { username, password } = ada
    const signedIn = await send(test, 'POST /login', { body: { username, password } })
    const { cookie } = signedIn
    const told = await send(test, 'GET /status', { cookie })
    expect(told).toMatchObject({ status: 200, json: { role_grants: { length: 100 } } })
    const changed = await send(test, 'POST /password', {
      cookie,
      body: { current_password: password, new_password: `${password}, another` },
    })
    const again = await send(test, 'POST /login', { body: { username, password: `${password}, another` } })
    const signedOut = await send(test, 'POST /logout', { cookie: again.cookie, body: {} })
    expect([signedIn, changed, again, signedOut].map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(await blocked()).toBe(8)
    await release()
    await Promise.all(calls)
  })

  it('nested calls are part of the outer call', async () => {
    const actions = {
      nested: mutation({
        doc: 'Reads by a call of its own, as the same account.',
        auth: { account: 'required', actor: 'required' },
        event: 'cell_update',
        output: z.object({ found: z.int(), later: z.boolean() }),
        async handler(_input, { afterCommit }) {
          const headers = { cookie }
          const found = (await test.service.call('cell_list', {}, { headers })) as { cells: unknown[] }
          afterCommit(async () => void (await test.service.call('cell_list', {}, { headers })))
          return { found: found.cells.length, later: true }
        },
      }),
    }
    const [ada] = await service({ actions, max_caller_connections: 1 })
    const { cookie } = ada
    const calls = Array.from({ length: 3 }, () =>
      test.service.call('nested' as string, {}, { headers: { cookie } }),
    )
    for (const answer of await Promise.all(calls)) expect(answer).toEqual({ found: 0, later: true })
  })
})
