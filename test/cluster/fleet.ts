import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../helpers/free-port.ts'
import { type Environment, runCellkeep, type ServerProcess, startServer } from '../helpers/server-process.ts'

/** One request and its outcome; times are from `performance.now()`. */
export type Seen = {
  node: string
  began: number
  ended: number
  /** `away`: 503 or 504, as documented. `cut`: no answer. `wrong`: an answer that no caller may get. */
  kind: 'ok' | 'refused' | 'away' | 'cut' | 'wrong'
  what: string
  /** Whether it changes a cell. */
  isWrite: boolean
}

export type Node = {
  name: string
  url: string
  process: ServerProcess
  isUp: boolean
  /** It was told to stop and is not running again yet. */
  isAway: boolean
  env: Environment
  /** What its previous processes logged. */
  logged: Record<string, unknown>[]
  /** The times in which the node is killed or frozen, so requests may get no answer. */
  owesNothing: { from: number; to: number }[]
}

export type Fleet = Awaited<ReturnType<typeof startFleet>>
type Via = { expects?: number[]; node?: Node; seen?: (status: number) => void }

/** The nodes, and a balancer that follows `/health/serving`; each request through it is recorded. */
export async function startFleet(
  count: number,
  makeDirectory: (name: string) => Promise<string>,
  envs: Environment[],
) {
  const seen: Seen[] = []
  let isOver = false
  let turn = 0

  const start = (node: Pick<Node, 'url' | 'env'>, cwd: string): Promise<ServerProcess> =>
    startServer(cwd, { ...node.env, CELLKEEP_PORT: new URL(node.url).port })
  /** Repeated, as a supervisor does while there is no database. */
  const startAgain = async (node: Node): Promise<ServerProcess> => {
    for (;;) {
      try {
        return await start(node, node.process.cwd)
      } catch (error) {
        if (isOver || !String(error).includes('ended first')) throw error
        await delay(500)
      }
    }
  }
  const nodes: Node[] = []
  for (let n = 1; n <= count; n++) {
    const name = `node-${n}`
    const own = { CELLKEEP_NODE_NAME: name, CELLKEEP_METRICS_PORT: `${await freePort()}` }
    const env = { ...envs[(n - 1) % envs.length], ...own }
    const node = { name, url: `http://127.0.0.1:${await freePort()}`, env }
    const process = await start(node, await makeDirectory(node.name))
    nodes.push({ ...node, process, isUp: true, isAway: false, logged: [], owesNothing: [] })
  }
  const watch = Promise.all(
    nodes.map(async (node) => {
      while (!isOver) {
        node.isUp = await fetch(`${node.url}/health/serving`, { signal: AbortSignal.timeout(1_000) }).then(
          ({ ok }) => ok,
          () => false,
        )
        await delay(200)
      }
    }),
  )
  const pick = (): Node => {
    const up = nodes.filter(({ isUp }) => isUp)
    const from = up.length > 0 ? up : nodes.filter(({ isAway }) => !isAway)
    return from[turn++ % from.length] as Node
  }

  const base = 'http://cluster.test'
  const through =
    ({ expects = [], node: only, seen: told }: Via): typeof fetch =>
    async (input, init) => {
      const node = only ?? pick()
      const began = performance.now()
      const isWrite = /"method":"cell_(create|update)"/.test(String(init?.body))
      const note = (kind: Seen['kind'], what: string): void =>
        void seen.push({ node: node.name, began, ended: performance.now(), kind, what, isWrite })
      try {
        const answer = await fetch(String(input).replace(base, node.url), init)
        told?.(answer.status)
        note(...(await judge(answer, expects)))
        return answer
      } catch (error) {
        if (init?.signal?.aborted) throw error
        const owed = !node.owesNothing.some(({ from, to }) => began <= to && performance.now() >= from)
        note(
          owed ? 'wrong' : 'cut',
          `connection cut: ${(error as { cause?: { code?: string } }).cause?.code}`,
        )
        throw error
      }
    }

  return {
    base,
    nodes,
    seen,
    /** A `fetch` for clients of `base`: by default, requests go to the nodes in turn. */
    fetch: (via: Via = {}) => through(via),
    pick,
    restart: async (node: Node): Promise<void> => {
      node.logged.push(...node.process.log())
      node.process = await startAgain(node)
      node.isAway = false
    },
    /** Runs an operator's command. */
    run: (...args: string[]) => runCellkeep(nodes[0]?.process.cwd as string, args, envs[0]),
    isReady: async (): Promise<boolean> => {
      const ready = nodes.map(({ url }) =>
        fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(2_000) }).then(
          ({ ok }) => ok,
          () => false,
        ),
      )
      return (await Promise.all(ready)).every(Boolean)
    },
    /** The sums of a counter over these nodes, by outcome. */
    outcomes: async (counter: string, of: Node[] = nodes): Promise<Record<string, number>> => {
      const found: Record<string, number> = {}
      for (const { env } of of) {
        const page = await fetch(`http://127.0.0.1:${env.CELLKEEP_METRICS_PORT}/metrics`)
        for (const line of (await page.text()).split('\n')) {
          const [, outcome, count] = /outcome="(\w+)".* (\d+)$/.exec(line) ?? []
          if (outcome && line.startsWith(`${counter}{`))
            found[outcome] = (found[outcome] ?? 0) + Number(count)
        }
      }
      return found
    },
    close: async (): Promise<void> => {
      isOver = true
      await watch
      await Promise.all(nodes.map(({ process }) => process.end('SIGTERM')))
    },
  }
}

/** Whether a caller may get this answer. */
async function judge(answer: Response, expects: number[]): Promise<[Seen['kind'], string]> {
  const { status, headers } = answer
  if (status < 400 || expects.includes(status)) return ['ok', String(status)]
  const { error } = (await answer
    .clone()
    .json()
    .catch(() => ({}))) as { error?: string | { data?: { reason?: string } } }
  const reason = typeof error === 'object' ? error.data?.reason : error
  const what = `${status} ${reason}`
  if (status === 504 || reason === 'shutting_down') return ['away', what]
  if (status === 503) {
    const promised = /^([1-9]|10)$/.test(headers.get('retry-after') ?? '')
    return promised ? ['away', what] : ['wrong', `${what} without Retry-After`]
  }
  return status >= 500 || status === 401 || status === 429 ? ['wrong', what] : ['refused', what]
}

/** Resident memory of a process, in MB. */
export async function residentMb(pid: number): Promise<number | undefined> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const kb = /VmRSS:\s+(\d+)/.exec(text)?.[1]
  return kb === undefined ? undefined : Math.round(Number(kb) / 1024)
}
