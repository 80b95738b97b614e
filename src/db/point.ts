import pg from 'pg'
import { explainReadOnly, refused } from './failure.ts'
import { compile, isWornOut, noteOpened, type Sql } from './sql.ts'

/** The most keys that one statement looks up. */
const batchMax = 128
/** Concurrent statements. Reads that arrive meanwhile form the next batch, so batches grow with the load. */
const underWayMax = 2

type Waiting<V> = { resolve(value: V | undefined): void; reject(error: unknown): void }

/**
 * Combines reads requested in one turn of the event loop, or while other batches run, into one call of
 * `load`, which starts after all of them were requested. Nothing is cached, so a revocation applies to the
 * next request.
 */
export function batched<V>(
  load: (keys: string[]) => Promise<Map<string, V>>,
  max = batchMax,
): (key: string) => Promise<V | undefined> {
  let waiting = new Map<string, Waiting<V>[]>()
  let underWay = 0
  let isPlanned = false

  const flush = async (): Promise<void> => {
    if (waiting.size === 0) return
    const batch = waiting
    waiting = new Map()
    underWay += 1
    try {
      const found = await load([...batch.keys()])
      for (const [key, readers] of batch) for (const reader of readers) reader.resolve(found.get(key))
    } catch (error) {
      for (const readers of batch.values()) for (const reader of readers) reader.reject(error)
    }
    underWay -= 1
    plan()
  }

  const plan = (): void => {
    if (isPlanned || waiting.size === 0 || underWay >= underWayMax) return
    isPlanned = true
    setImmediate(() => {
      isPlanned = false
      void flush()
    })
  }

  return (key) =>
    new Promise((resolve, reject) => {
      const readers = waiting.get(key)
      if (readers) return readers.push({ resolve, reject })
      waiting.set(key, [{ resolve, reject }])
      if (waiting.size === max) void flush()
      else plan()
    })
}

/**
 * A read that joins its neighbours: those asked for in one turn share a statement, whoever asks. Its rows say by
 * `nth`, from 1, to which key they belong; a key has one row at most.
 */
export type JoinedRead<K extends readonly (string | null)[], V> = {
  statement(keys: readonly K[]): Sql
  /** The most keys of one statement; with what a row may hold, it bounds the answer on the shared connection. */
  max: number
  /** Only a type. */
  row?: V
}

/** Runs joined reads by means of `point`. */
export function joiner(point: <T>(query: Sql) => Promise<T[]>) {
  const readers = new WeakMap<object, (key: string) => Promise<unknown>>()
  return <K extends readonly (string | null)[], V>(
    read: JoinedRead<K, V>,
    key: K,
  ): Promise<V | undefined> => {
    const known = readers.get(read)
    const reader =
      known ??
      batched(async (texts: string[]) => {
        const rows = await point<V & { nth: number }>(read.statement(texts.map((text) => JSON.parse(text))))
        return new Map(rows.map((row) => [texts[row.nth - 1] as string, row]))
      }, read.max)
    if (!known) readers.set(read, reader)
    return reader(JSON.stringify(key)) as Promise<V | undefined>
  }
}

type Observers = {
  onError(error: unknown, what: string): void
  onStatement?: ((text: string) => void) | undefined
}

/** Enough for short reads: a pipelined connection sends the next one without waiting for an answer. */
const connections = 2

/**
 * Point reads on shared, pipelined connections. A lost connection rejects the reads in flight on it; the next
 * read opens a new one.
 */
export function pipelinedReader(settings: pg.ClientConfig, { onError, onStatement }: Observers) {
  const slots: (Promise<pg.Client> | undefined)[] = Array.from({ length: connections })
  let next = 0
  let closed = false

  const open = (slot: number): Promise<pg.Client> => {
    const client = new pg.Client(settings)
    noteOpened(client)
    const drop = () => {
      if (slots[slot] === opened) slots[slot] = undefined
    }
    client.on('error', (error) => {
      drop()
      onError(error, 'a reading database connection ended')
    })
    client.on('end', drop)
    const opened: Promise<pg.Client> = client.connect().then(
      () => client,
      (error) => {
        drop()
        throw error
      },
    )
    slots[slot] = opened
    return opened
  }

  const connected = (): Promise<pg.Client> => {
    if (closed) throw new Error('client was closed')
    const slot = next++ % connections
    return slots[slot] ?? open(slot)
  }

  /** A worn-out connection takes no further reads. */
  const retire = (client: pg.Client, opened: Promise<pg.Client>): void => {
    const slot = slots.indexOf(opened)
    if (slot < 0) return
    slots[slot] = undefined
    // Deferred, so that reads which awaited this connection can still send; end() waits for their answers.
    setImmediate(() => client.end().catch(() => {}))
  }

  return {
    point: async <T>(query: Sql): Promise<T[]> => {
      const statement = compile(query)
      onStatement?.(statement.text)
      try {
        const opened = connected()
        const client = await opened
        if (isWornOut(client)) retire(client, opened)
        return (await client.query(statement)).rows as T[]
      } catch (error) {
        return explainReadOnly(refused(error))
      }
    },
    close: async (): Promise<void> => {
      closed = true
      await Promise.all(slots.map(async (slot) => (await slot?.catch(() => undefined))?.end()))
    },
  }
}
