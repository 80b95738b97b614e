import pg from 'pg'
import type { TestAccount, TestService } from '../../src/testing/index.ts'

/** A row as a follower reads it; those of the writers have the type `followed`. */
export type Heard = { seq: number; event_type: string; metadata: Record<string, unknown> | null }

type Ear = {
  hear(row: Heard): void
  /** True once the last writer has finished. */
  isOver(): boolean
  /** True once the writers have finished and this follower has read as many rows as they committed. */
  isDone(): boolean
}

/** Reads the log while it is written, and resolves when it has read everything. */
export type Follower = { name: string; run(ear: Ear): Promise<void> }

export type Followed = {
  name: string
  heard: number
  /** The flaws of what was read; empty if it was every committed row once, in rising `seq`. */
  faults: string[]
}

type FollowOptions = { rows: number; writers?: number; rowsPerTransaction?: number }

/** Runs followers beside transactions that commit in the reverse order of their writes; every fifth rolls back. */
export async function follow(
  databaseUrl: string,
  followers: readonly Follower[],
  options: FollowOptions,
): Promise<Followed[]> {
  const committed = new Set<string>()
  let isOver = false
  const listening = Promise.all(
    followers.map(async ({ name, run }) => {
      const heard: Heard[] = []
      await run({
        hear: (row) => void (row.event_type === 'followed' && heard.push(row)),
        isOver: () => isOver,
        isDone: () => isOver && heard.length >= committed.size,
      })
      return { name, heard: heard.length, faults: faultsOf(heard, committed) }
    }),
  )
  const writing = write(databaseUrl, committed, options).finally(() => {
    isOver = true
  })
  const [found] = await Promise.all([listening, writing])
  return found
}

async function write(
  databaseUrl: string,
  committed: Set<string>,
  { rows, writers = 12, rowsPerTransaction = 8 }: FollowOptions,
): Promise<void> {
  const clients = Array.from({ length: writers }, () => new pg.Client(databaseUrl))
  await Promise.all(clients.map((client) => client.connect()))
  let transaction = 0
  try {
    while (committed.size < rows) {
      const open = await Promise.all(
        clients.map(async (client) => {
          transaction += 1
          const names = Array.from({ length: rowsPerTransaction }, (_, at) => `${transaction}.${at}`)
          const isKept = transaction % 5 !== 0
          const entries = names.map((name) => ({
            event_type: 'followed',
            outcome: 'success',
            metadata: { name },
          }))
          await client.query('begin')
          await client.query('select audit_write($1)', [JSON.stringify(entries)])
          return { client, names, isKept }
        }),
      )
      for (const { client, names, isKept } of open.reverse()) {
        await client.query(isKept ? 'commit' : 'rollback')
        if (isKept) for (const name of names) committed.add(name)
      }
    }
  } finally {
    await Promise.all(clients.map((client) => client.end()))
  }
}

const faultsMax = 10

/** Each row must be read once, in rising `seq`, and the rows of a transaction in the order of writing. */
export function faultsOf(heard: readonly Heard[], committed: ReadonlySet<string>): string[] {
  const faults: string[] = []
  const seen = new Map<string, number>()
  const lastOf = new Map<string, number>()
  let last = 0
  for (const { seq, metadata } of heard) {
    const name = String(metadata?.name)
    if (seq <= last) faults.push(`seq ${seq} after ${last}`)
    if (seen.has(name)) faults.push(`${name} as ${seen.get(name)} and again as ${seq}`)
    if (!committed.has(name)) faults.push(`${name} was never committed`)
    const [transaction = '', at] = name.split('.')
    if (Number(at) !== (lastOf.get(transaction) ?? -1) + 1)
      faults.push(`${name} out of its transaction's order`)
    lastOf.set(transaction, Number(at))
    seen.set(name, seq)
    last = seq
  }
  const missed = [...committed].filter((name) => !seen.has(name))
  if (missed.length > 0) faults.push(`${missed.length} rows were never heard, ${missed[0]} among them`)
  return faults.slice(0, faultsMax)
}

/** Polls `audit_log_list` for rows after the last one it has seen. */
export const listFollower = (admin: TestAccount): Follower => ({
  name: 'audit_log_list by since_seq',
  run: async ({ hear, isOver }) => {
    let since_seq = 0
    for (;;) {
      const wasOver = isOver()
      const { events } = await admin.client.audit_log_list({ since_seq, limit: 200 })
      for (const row of events) hear(row)
      since_seq = events.at(-1)?.seq ?? since_seq
      if (events.length === 0 && wasOver) return
    }
  },
})

/** Exports repeatedly, each time from the last row of the previous export. */
export const exportFollower = ({ service }: Pick<TestService, 'service'>): Follower => ({
  name: 'export by since_seq',
  run: async ({ hear, isOver }) => {
    let since_seq = 0
    for (;;) {
      const wasOver = isOver()
      let count = 0
      for await (const row of await service.operations.exportAudit({ since_seq })) {
        hear(row)
        since_seq = row.seq
        count += 1
      }
      if (count === 0 && wasOver) return
    }
  },
})
