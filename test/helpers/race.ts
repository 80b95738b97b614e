import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'

/** The other side of a race: a connection of the test that holds locks until it commits. */
type Rival = {
  query: pg.Client['query']
  /** Resolves once this many other connections of the database wait for a lock. */
  blocks(count: number): Promise<void>
  /** Begins a transaction with this statement. */
  begin(text: string, values?: unknown[]): Promise<void>
  commit(): Promise<void>
  /**
   * Commits, so that a call that waits for this transaction continues, and resolves as the call does. The call is
   * awaited from the start: its refusal may arrive before the reply to the commit.
   */
  release<T>(call: Promise<T>): Promise<T>
  close(): Promise<void>
}

/** Opens a rival connection to the database of a test service. */
export async function rival(databaseUrl: string): Promise<Rival> {
  const client = new pg.Client(databaseUrl)
  const observer = new pg.Client(databaseUrl)
  await Promise.all([client.connect(), observer.connect()])
  const blocks = async (count: number): Promise<void> => {
    for (;;) {
      const { rows } = await observer.query(`
        select count(*)::int as waiting from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`)
      if (rows[0].waiting >= count) return
      await delay(2)
    }
  }
  const commit = async (): Promise<void> => {
    await client.query('commit')
  }
  return {
    query: client.query.bind(client),
    blocks,
    begin: async (text, values = []) => {
      await client.query('begin')
      await client.query(text, values)
    },
    commit,
    release: async (call) => {
      const [answer] = await Promise.all([call, blocks(1).then(commit)])
      return answer
    },
    close: async () => {
      await Promise.all([client.end(), observer.end()])
    },
  }
}
