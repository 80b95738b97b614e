import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  failureRow,
  type LabContext,
  mutationLab,
  successRow,
  write,
} from '../../test/helpers/mutation-lab.ts'
import { sql } from '../db/db.ts'
import { refusal } from '../errors.ts'

const lab = await mutationLab()
afterAll(() => lab.close())
beforeEach(() => lab.reset())

/** The state after a mutation that was refused or rolled back. */
const undone = { notes: [], audit: [failureRow], effects: [], runs: 1 }

describe('a mutation', () => {
  it('that commits leaves its writes, its success row and its effects', async () => {
    expect(await lab.outcome(async ({ db }) => db.run(write('kept')))).toEqual({
      status: 200,
      reason: 'ok',
      notes: ['kept'],
      audit: [successRow],
      effects: ['effect'],
      runs: 1,
    })
  })

  it('that refuses leaves nothing but its row, as a failure', async () => {
    const refuses = async ({ db }: LabContext) => {
      await db.run(write('lost'))
      throw refusal('cell_not_found')
    }
    expect(await lab.outcome(refuses)).toEqual({ status: 404, reason: 'cell_not_found', ...undone })
  })

  it('that fails leaves one failure row: its own, as recorded so far', async () => {
    const fails = async ({ db }: LabContext) => {
      await db.run(write('lost'))
      throw new Error('unexpected')
    }
    expect(await lab.outcome(fails)).toEqual({ status: 500, reason: 'internal_error', ...undone })
  })

  it('that refuses while another branch of it goes on leaves nothing of that branch', async () => {
    let branch: Promise<unknown> | undefined
    const refuses = async ({ db }: LabContext) => {
      const sleep = () => db.run(sql`select pg_sleep(0.05)`)
      branch = sleep().then(() => db.run(write('lost')))
      // ROLLBACK is sent during the first sleep, and waits for the second.
      await Promise.all([branch, sleep(), Promise.reject(refusal('cell_not_found'))])
    }
    expect(await lab.outcome(refuses)).toEqual({ status: 404, reason: 'cell_not_found', ...undone })
    await expect(branch).rejects.toThrow('The transaction has ended')
    expect(await lab.notes()).toEqual([])
  })

  it('whose failed statement was swallowed does not commit', async () => {
    const swallows = async ({ db }: LabContext) => {
      await db.run(write('lost'))
      await db.run(sql`select 1 / 0`).catch(() => {})
    }
    expect(await lab.outcome(swallows)).toEqual({ status: 500, reason: 'internal_error', ...undone })
  })

  it('whose commit fails answers with an error and one failure row, without effects', async () => {
    const refused = await lab.outcome(async ({ db }) => db.run(write('refuse')))
    expect(refused).toEqual({ status: 500, reason: 'internal_error', ...undone })
  })

  it('that runs into the statement timeout is undone, and its connection goes on', async () => {
    const sleeps = async ({ db }: LabContext) => {
      await db.run(write('lost'))
      await db.run(sql`set local statement_timeout = 50`)
      await db.run(sql`select pg_sleep(60)`)
    }
    expect(await lab.outcome(sleeps)).toEqual({ status: 504, reason: 'timeout', ...undone })
    expect(await lab.outcome(async ({ db }) => db.run(write('kept')))).toMatchObject({ status: 200 })
  })

  it.each([
    ['in its transaction', [write('lost')]],
    ['before its first statement', []],
  ])(
    'that waits for ever %s is undone and answered after 30 s, and leaves its place',
    async (_where, statements) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      onTestFinished(() => void vi.useRealTimers())
      const hangs = async ({ db }: LabContext) => {
        for (const statement of statements) await db.run(statement)
        vi.advanceTimersByTime(30_000)
        await new Promise(() => {})
      }
      expect(await lab.outcome(hangs)).toEqual({ status: 504, reason: 'timeout', ...undone })
      let isAlone = false
      await lab.answer(async ({ app }) => {
        isAlone = app.gate.isAlone(lab.ada.id)
      })
      expect(isAlone).toBe(true)
    },
  )

  it('that writes first 30 s after it began writes nothing', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const isLate = async ({ db }: LabContext) => {
      vi.advanceTimersByTime(30_000)
      await db.run(write('late'))
    }
    expect(await lab.outcome(isLate)).toEqual({ status: 504, reason: 'timeout', ...undone })
  })
})

describe('a connection that ends', () => {
  /** The mutation is retried once, on another connection, which ends too. */
  const lost = { status: 503, reason: 'service_unavailable', ...undone, runs: 2 }
  const kill = (pid: number) => lab.admin.query('select pg_terminate_backend($1, 5000)', [pid])
  const pidOf = async ({ db }: LabContext) =>
    ((await db.first<{ pid: number }>(sql`select pg_backend_pid() as pid`)) as { pid: number }).pid

  it('between two statements undoes the mutation', async () => {
    const killed = async (context: LabContext) => {
      await context.db.run(write('lost'))
      await kill(await pidOf(context))
      await context.db.run(write('lost'))
    }
    expect(await lab.outcome(killed)).toEqual(lost)
  })

  it('during a statement undoes the mutation', async () => {
    const killed = async (context: LabContext) => {
      const pid = await pidOf(context)
      await Promise.all([context.db.run(sql`select pg_sleep(60)`), kill(pid)])
    }
    expect(await lab.outcome(killed)).toEqual(lost)
  })

  it('between write and commit, seen by a statement, undoes the mutation and is known to', async () => {
    const killed = async (context: LabContext) => {
      await context.db.run(write('lost'))
      await kill(await pidOf(context))
      await context.db.run(sql`select`).catch(() => {})
    }
    expect(await lab.outcome(killed)).toEqual(lost)
  })

  it('while no statement is under way does not end the process', async () => {
    const killed = async (context: LabContext) => {
      await context.db.run(write('lost'))
      await kill(await pidOf(context))
      // The connection ended before `kill` was answered; the driver notices in one of the next turns of the event loop.
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    }
    expect(await lab.outcome(killed)).toEqual(lost)
  })

  it('during COMMIT leaves an unknown outcome: no retry, no failure row, no effects', async () => {
    expect(await lab.outcome(async ({ db }) => db.run(write('die')))).toEqual({ ...lost, audit: [], runs: 1 })
  })
})

/** Resolves once the connection waits for a lock or has it. */
async function untilWaiting(pid: number): Promise<void> {
  for (;;) {
    const { rows } = await lab.admin.query(
      'select state, wait_event_type from pg_stat_activity where pid = $1',
      [pid],
    )
    if (rows[0]?.wait_event_type === 'Lock' || rows[0]?.state === 'idle') return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

describe('a conflict', () => {
  it('with another transaction is resolved by one retry, with effects and rows once', async () => {
    await lab.admin.query(`insert into note values ('a'), ('b')`)
    const rival = new pg.Client(lab.test.databaseUrl)
    await rival.connect()
    onTestFinished(() => rival.end())
    const lock = (text: string) => `select from note where text = '${text}' for update`
    const rivalPid = (await rival.query('select pg_backend_pid() as pid')).rows[0].pid as number
    await rival.query(`begin; set local deadlock_timeout = '1min'; ${lock('b')}`)
    let rivalDone: Promise<unknown> | undefined
    const deadlocks = async ({ db }: LabContext) => {
      // The retry may reach `a` before the rival that waited for it, and run into the same deadlock again.
      await rivalDone
      await db.run(sql`set local deadlock_timeout = '20ms'`)
      await db.run(sql.raw(lock('a')))
      rivalDone ??= rival.query(`${lock('a')}; commit`)
      // The server checks for a deadlock once per wait, so the rival must wait before we do.
      await untilWaiting(rivalPid)
      await db.run(sql.raw(lock('b')))
    }
    expect(await lab.outcome(deadlocks)).toMatchObject({
      status: 200,
      audit: [successRow],
      effects: ['effect'],
      runs: 2,
    })
    await rivalDone
  })

  it.each([
    ['in the handler', sql`do $$ begin raise sqlstate '40P01'; end $$`],
    ['at commit', write('conflict')],
  ])(
    '%s that stays is answered 503 after one repeat, with the row of the last run',
    async (_where, conflict) => {
      expect(await lab.outcome(async ({ db }) => db.run(conflict))).toEqual({
        status: 503,
        reason: 'service_unavailable',
        ...undone,
        runs: 2,
      })
    },
  )
})

describe('more audit rows than one statement may write in its time', () => {
  const many = 10_000
  const records = async ({ db, audit }: LabContext) => {
    await db.run(write('kept'))
    for (let n = 0; n < many; n++) audit('cell_update', { cell_id: randomUUID() })
  }
  /** The time limit of a statement, as it would be met by one that inserts rows that match the condition. */
  const cancelStatements = async (condition: string) => {
    await lab.admin.query(`
      create function cancel() returns trigger language plpgsql as $$
      begin
        if ${condition} then raise exception 'too late' using errcode = 'query_canceled'; end if;
        return null;
      end $$;
      create trigger cancel after insert on audit_inbox referencing new table as new_rows
        for each statement execute function cancel()`)
    onTestFinished(async () => void (await lab.admin.query('drop function cancel cascade')))
  }

  it('are all written', async () => {
    await cancelStatements('(select count(*) from new_rows) > 5000')
    expect(await lab.answer(records)).toEqual({ status: 200, reason: 'ok' })
    expect(await lab.audited()).toHaveLength(many + 1)
    expect(lab.runs).toBe(1)
  })

  it('cost a mutation those of the statements that fail, and nothing else', async () => {
    await cancelStatements('(select count(*) from new_rows) = 5000')
    const { lost } = lab.test.service.app.audit
    expect(await lab.answer(records)).toEqual({ status: 200, reason: 'ok' })
    expect(await lab.notes()).toEqual(['kept'])
    expect(await lab.audited()).toHaveLength(1)
    expect(lab.test.service.app.audit.lost - lost).toBe(many)
  })
})

describe('a transaction inside another', () => {
  it('is refused with an exception, and the outer one is undone', async () => {
    const nests = async ({ app, db }: LabContext) => {
      await db.run(write('lost'))
      await app.db.transaction(async (tx) => tx.run(write('inner')))
    }
    expect(await lab.outcome(nests)).toEqual({ status: 500, reason: 'internal_error', ...undone })
    expect(lab.captured.text()).toContain('A transaction is already open')
  })

  it('is one only while the outer runs', async () => {
    const ended = Promise.withResolvers<void>()
    let left: Promise<unknown> | undefined
    const leaves = async ({ app, db }: LabContext) => {
      left = ended.promise.then(() => app.db.transaction(async (tx) => tx.run(write('later'))))
      await db.run(write('outer'))
    }
    expect(await lab.outcome(leaves)).toMatchObject({ status: 200, notes: ['outer'] })
    ended.resolve()
    await left
    expect(await lab.notes()).toEqual(['outer', 'later'])
  })
})
