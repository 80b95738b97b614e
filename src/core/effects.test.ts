import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { call, send } from '../../test/helpers/http.ts'
import { type LabContext, mutationLab, successRow, write } from '../../test/helpers/mutation-lab.ts'
import { sql } from '../db/db.ts'
import { nodeListener } from '../http/node.ts'

const lab = await mutationLab()
afterAll(() => lab.close())
beforeEach(() => lab.reset())

describe('effects after a commit', () => {
  it('are isolated: one that fails is logged, its siblings run, the reply is unaffected', async () => {
    const failing = async ({ db, afterCommit }: LabContext) => {
      await db.run(write('kept'))
      afterCommit(() => {
        throw new Error('thrown at once')
      })
      afterCommit(async () => {
        throw new Error('thrown later')
      })
      afterCommit(() => void lab.effects.push('last'))
    }
    expect(await lab.outcome(failing)).toMatchObject({
      status: 200,
      notes: ['kept'],
      audit: [successRow],
      effects: ['effect', 'last'],
    })
    const logged = lab.captured.lines().filter(({ msg }) => msg === 'an effect after commit failed')
    expect(logged.map(({ err }) => (err as Error).message)).toEqual(['thrown at once', 'thrown later'])
  })

  it('are functions: anything else, such as the promise of work begun too early, undoes the mutation', async () => {
    const early = async ({ db, afterCommit }: LabContext) => {
      await db.run(write('undone'))
      afterCommit(Promise.resolve() as never)
    }
    expect(await lab.outcome(early)).toMatchObject({ status: 500, notes: [] })
    const logged = lab.captured.lines().find(({ event }) => event === 'request_failed')
    expect(logged).toMatchObject({ err: { message: expect.stringMatching(/^afterCommit takes a function/) } })
  })

  it('see the commit, and may begin their own transaction', async () => {
    const chained = async ({ app, db, afterCommit }: LabContext) => {
      await db.run(write('first'))
      afterCommit(() =>
        app.db.transaction(async (tx) => void (await tx.run(sql`update note set text = 'second'`))),
      )
    }
    expect(await lab.outcome(chained)).toMatchObject({ status: 200, notes: ['second'] })
  })

  it('of work that nobody awaits are refused once the transaction has ended, as are its rows and notifications', async () => {
    let late: LabContext | undefined
    await lab.outcome(async (context) => {
      late = context
      await context.db.run(write('kept'))
    })
    const { audit, notify, afterCommit } = late as LabContext
    const revoked = { role_grant_id: crypto.randomUUID(), role: 'admin', scope_id: null }
    expect(() => audit('cell_update', { cell_id: crypto.randomUUID() })).toThrow('The transaction has ended')
    expect(() => notify({ actor_id: lab.ada.actor_id }, 'role_grant_revoke', revoked)).toThrow(
      'The transaction has ended',
    )
    expect(() => afterCommit(() => void lab.effects.push('late'))).toThrow('The transaction has ended')
    expect(lab.effects).toEqual(['effect'])
  })

  it('run when the audit log is broken: the mutation stands, the failure is counted', async () => {
    const { audit } = lab.test.service.app
    const before = audit.failures
    await lab.admin.query('alter table audit_inbox add constraint broken check (false) not valid')
    try {
      expect(await lab.outcome(async ({ db }) => db.run(write('kept')))).toMatchObject({
        status: 200,
        notes: ['kept'],
        audit: [],
        effects: ['effect'],
      })
    } finally {
      await lab.admin.query('alter table audit_inbox drop constraint broken')
    }
    expect(audit.failures).toBe(before + 1)
  })

  it('of a login, its cookie above all, do not happen when its commit fails', async () => {
    const { url } = lab.test
    const { username, password } = lab.ada
    const login = () =>
      send(url, { method: 'POST', path: '/api/account/login', body: { username, password } })
    await lab.admin.query(`
      create function no_session() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
      create constraint trigger no_session after insert on auth_session deferrable initially deferred
        for each row execute function no_session()`)
    const refused = await login()
    await lab.admin.query('drop function no_session cascade')
    expect([refused.status, refused.json]).toEqual([500, { error: 'internal_error' }])
    expect(refused.headers).not.toHaveProperty('set-cookie')
    expect(await lab.audited()).toMatchObject([{ event_type: 'login', outcome: 'failure' }])
    expect((await login()).headers['set-cookie']).toHaveLength(1)
  })
})

describe('a client that leaves', () => {
  /** Posts to a server that reports when the connection closes; `left` ends the client and waits for that. */
  async function leaver(body: unknown) {
    const server = createServer(nodeListener(lab.test.service.handle)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const gone = new Promise((resolve) =>
      server.once('connection', (socket) => socket.once('close', resolve)),
    )
    const client = new AbortController()
    const request = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/api/rpc`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', cookie: lab.ada.cookie },
      body: JSON.stringify(body),
      signal: client.signal,
    }).catch(() => {})
    return async () => {
      client.abort()
      await Promise.all([request, gone])
      server.close()
    }
  }

  function gate() {
    const [entered, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    lab.work = async ({ db }) => {
      entered.resolve()
      await opened.promise
      await db.run(write('kept'))
    }
    return { entered: entered.promise, open: opened.resolve }
  }

  it('in the middle of a mutation changes nothing: state, audit row and effects agree', async () => {
    const { entered, open } = gate()
    const leave = await leaver(call('act'))
    await entered
    await leave()
    open()
    await expect.poll(lab.audited).toEqual([successRow])
    await expect.poll(() => lab.effects).toEqual(['effect'])
    expect(await lab.notes()).toEqual(['kept'])
  })

  it('in the middle of a batch lets the running entry finish, and later ones do not start', async () => {
    const { entered, open } = gate()
    const leave = await leaver([call('act'), call('act'), call('act')])
    await entered
    await leave()
    const before = lab.captured.lines().length
    open()
    await expect.poll(() => lab.captured.lines().slice(before)).toMatchObject([{ msg: 'request' }])
    expect([lab.runs, await lab.notes(), await lab.audited()]).toEqual([1, ['kept'], [successRow]])
  })
})
