import pg from 'pg'
import { z } from 'zod'
import { type MutationContext, mutation } from '../../src/core/declare.ts'
import { sql } from '../../src/db/db.ts'
import { testService } from '../../src/testing/index.ts'
import { capturedLog } from './captured-log.ts'
import { call, reasonOf, rpc } from './http.ts'

const auth = { account: 'required', actor: 'required' } as const
export type LabContext = MutationContext<typeof auth, never>

/** Recorded in the audit rows of the lab's mutation. */
const cell_id = '11111111-1111-1111-1111-111111111111'
export const successRow = { event_type: 'cell_update', outcome: 'success', metadata: { cell_id } }
export const failureRow = { ...successRow, outcome: 'failure' }

/** Inserts a note into the lab's table; `refuse`, `conflict` and `die` make the COMMIT of their transaction fail. */
export const write = (text: string) => sql`insert into note (text) values (${text})`

/** A service with one mutation, `act`, that records one row and one effect around `lab.work`. */
export async function mutationLab() {
  const lab = {
    work: (async () => {}) as (context: LabContext, text: string) => Promise<unknown>,
    effects: [] as string[],
    runs: 0,
  }
  const act = mutation({
    doc: 'Does what the test says.',
    auth,
    event: 'cell_update',
    input: z.strictObject({ text: z.string().default('') }),
    output: z.unknown(),
    async handler({ text }, context) {
      lab.runs += 1
      context.audit('cell_update', { cell_id })
      context.afterCommit(() => void lab.effects.push('effect'))
      return (await lab.work(context, text)) ?? null
    },
  })
  const captured = capturedLog()
  const test = await testService({ actions: { act }, log: captured.log, statement_timeout_ms: 2_000 })
  const ada = await test.account()
  const admin = new pg.Client(test.databaseUrl)
  await admin.connect()
  await admin.query(`
    create table note (text text);
    create function at_commit() returns trigger language plpgsql as $$
    begin
      if new.text = 'refuse' then raise exception 'refused at commit'; end if;
      if new.text = 'conflict' then raise exception 'again' using errcode = '40001'; end if;
      if new.text = 'die' then perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(1); end if;
      return null;
    end $$;
    create constraint trigger at_commit after insert on note deferrable initially deferred
      for each row execute function at_commit();`)

  const notes = async () => (await admin.query('select text from note')).rows.map(({ text }) => text)
  const audited = async () =>
    (await admin.query('select event_type, outcome, metadata from audit_entries() order by written')).rows
  const reply = (text = '') => rpc(test.url, call('act', { text }), { cookie: ada.cookie })
  const answer = async (work: typeof lab.work) => {
    lab.work = work
    const answered = await reply()
    return { status: answered.status, reason: reasonOf(answered) }
  }
  return Object.assign(lab, {
    test,
    ada,
    admin,
    captured,
    notes,
    audited,
    reset: async () => {
      await admin.query('truncate note; truncate audit_log, audit_inbox cascade')
      lab.effects = []
      lab.runs = 0
    },
    /** Calls `act` with the current `work`. */
    reply,
    answer,
    /** Calls `act`; resolves to its outcome, rows and effects. */
    outcome: async (work: typeof lab.work) => {
      return {
        ...(await answer(work)),
        notes: await notes(),
        audit: await audited(),
        effects: lab.effects,
        runs: lab.runs,
      }
    },
    close: async () => {
      await admin.end()
      await test.close()
    },
  })
}
