import { connect } from 'node:net'
import { createHistogram } from 'node:perf_hooks'

/**
 * The load runner: its own process, which takes one job at a time over IPC. Requests are complete HTTP texts,
 * prepared in advance, and replies are only split by their Content-Length or last chunk. autocannon parses replies in JavaScript,
 * uses more CPU than the server it measures, and so hides how fast the floor is.
 */
export type LoadJob = {
  port: number
  /** Complete requests; each connection cycles through the list from a different start. */
  requests: string[]
  connections: number
  seconds: number
  /** Pause between two requests of a connection, for probes. */
  pauseMs?: number
  /**
   * Requests a second of all connections together, at random moments. One that is due while its connection waits is
   * counted from then, so that a server which falls behind is not asked less.
   */
  perSecond?: number
}

/** Latencies in milliseconds, `max` the longest; `failed` counts replies that are not 2xx and lost connections. */
export type LoadResult = {
  /** Each latency, of a job with `perSecond`. */
  samples?: number[]
  rate: number
  p50: number
  p99: number
  max: number
  count: number
  failed: number
}

if (process.send) process.on('message', (job: LoadJob) => void run(job).then((r) => process.send?.(r)))

async function run(job: LoadJob): Promise<LoadResult> {
  const latencies = createHistogram()
  const requests = job.requests.map((text) => Buffer.from(text))
  const samples = job.perSecond === undefined ? undefined : ([] as number[])
  const meanMs = job.perSecond === undefined ? undefined : (1000 * job.connections) / job.perSecond
  const state = { isOver: false, failed: 0, latencies, samples, requests, meanMs, pauseMs: job.pauseMs ?? 0 }
  const started = performance.now()
  const open = Array.from({ length: job.connections }, (_, index) => {
    const first = Math.floor((index * requests.length) / job.connections)
    return client(job.port, first, state)
  })
  await new Promise((resolve) => setTimeout(resolve, job.seconds * 1000))
  state.isOver = true
  const seconds = (performance.now() - started) / 1000
  for (const socket of open) socket.destroy()
  const milliseconds = (percentile: number) => latencies.percentile(percentile) / 1000
  return {
    rate: latencies.count / seconds,
    p50: milliseconds(50),
    p99: milliseconds(99),
    max: milliseconds(100),
    count: latencies.count,
    failed: state.failed,
    ...(samples && { samples }),
  }
}

type State = {
  isOver: boolean
  failed: number
  readonly latencies: ReturnType<typeof createHistogram>
  readonly requests: readonly Buffer[]
  readonly pauseMs: number
  readonly samples: number[] | undefined
  /** The mean between two requests of a connection. */
  readonly meanMs: number | undefined
}

/** One keep-alive connection with one request in flight at a time. */
function client(port: number, first: number, state: State) {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const { meanMs } = state
  let next = first
  let sent = 0
  let missing = 0
  let head: Buffer | undefined
  const send = (at = performance.now()): void => {
    if (state.isOver) return
    sent = at
    socket.write(state.requests[next] as Buffer)
    next = (next + 1) % state.requests.length
  }
  /** At a random moment; if that has passed, at once, but counted from that moment. */
  const sendWhenDue = (mean: number): void => {
    const due = sent - mean * Math.log(1 - Math.random())
    const waitMs = due - performance.now()
    if (waitMs > 0) setTimeout(send, waitMs)
    else send(due)
  }
  const fail = (): void => {
    if (!state.isOver) state.failed += 1
  }
  socket.on('connect', () => {
    sent = performance.now()
    if (meanMs === undefined) send()
    else sendWhenDue(meanMs)
  })
  socket.on('error', fail)
  socket.on('end', fail)
  socket.on('data', (chunk: Buffer) => {
    if (missing === 0) {
      const bytes = head ? Buffer.concat([head, chunk]) : chunk
      const end = bytes.indexOf('\r\n\r\n')
      head = end < 0 ? bytes : undefined
      if (end < 0) return
      missing = end + 4 + contentLength(bytes.toString('latin1', 0, end)) - bytes.length
      if (bytes[9] !== 0x32) fail()
    } else missing -= chunk.length
    if (missing === Infinity && chunk.subarray(-lastChunk.length).equals(lastChunk)) missing = 0
    if (missing > 0 || state.isOver) return
    const took = performance.now() - sent
    state.latencies.record(Math.max(1, Math.round(took * 1000)))
    state.samples?.push(took)
    if (meanMs !== undefined) sendWhenDue(meanMs)
    else if (state.pauseMs > 0) setTimeout(send, state.pauseMs)
    else send()
  })
  return socket
}

const lastChunk = Buffer.from('0\r\n\r\n')

/** Infinite for a reply in chunks. */
function contentLength(head: string): number {
  if (/\r\ntransfer-encoding: chunked/i.test(head)) return Infinity
  const [, digits] = /\r\ncontent-length: (\d+)/i.exec(head) ?? []
  if (digits === undefined) throw new Error(`A reply without Content-Length:\n${head}`)
  return Number(digits)
}
