import { setTimeout as delay } from 'node:timers/promises'
import type { App } from '../../core/app.ts'
import { readCluster } from '../../nodes/cluster.ts'
import { operations } from '../../operations.ts'
import { drainNamed } from '../nodes.ts'
import { command } from '../shell/command.ts'
import type { CommandIo } from '../shell/output.ts'
import { withService } from '../with-service.ts'
import { type Frame, frameText, type Order, orders } from './frame.ts'

const everyMs = 2_000

export const top = command({
  name: 'top',
  usage: '[--once]',
  summary: 'Watch the nodes and their database, every two seconds.',
  details:
    'Shows what each node last reported, so it also shows nodes that hang. Keys: q quits, space pauses, s sorts by the\nnext column, d drains a node. With --once or --json, or without a terminal, it prints one frame and exits.',
  options: { once: { type: 'boolean' } },
  run: ({ options, out, io }) =>
    withService(io, async ({ app }) => {
      if (!options.once && !out.json && io.stdin.isTTY && io.stdout.isTTY) return await watch(app, io)
      const frame = await look(app)
      if (out.json) out.result({ ...frame }, '')
      else io.stdout.write(frameText(frame, 'name'))
    }),
})

async function look(app: App): Promise<Frame> {
  const [cluster, { nodes }] = await Promise.all([readCluster(app.db.readOnly), operations.nodes(app)])
  const now = app.db.clock.now()
  const seen = nodes.map((one) => ({
    ...one,
    seen_s: Math.max(0, Math.round((now - Date.parse(one.seen_at)) / 1000)),
  }))
  return { at: new Date(now).toISOString(), cluster, nodes: seen }
}

/** Shows frames until `q`. While the database is away it shows the last one, with its age. */
async function watch(app: App, { stdin, stdout }: CommandIo): Promise<void> {
  const names = Object.keys(orders) as Order[]
  const ended = new AbortController()
  let order: Order = 'name'
  let held = false
  let last: { frame: Frame; at: number } | undefined
  let trouble = ''
  /** Why a node was not drained; shown until the next key. */
  let refused = ''
  /** The name that is being typed after `d`. */
  let typed: string | undefined

  const draw = (): void => {
    const age = last ? Math.round((performance.now() - last.at) / 1000) : 0
    const notes = [
      trouble && `${trouble} This is ${age} s old.`,
      refused,
      held && 'Held.',
      typed !== undefined && `Drain which node? ${typed}`,
    ]
    const text = last ? frameText(last.frame, order) : ''
    stdout.write(
      `\u001b[H\u001b[J${text}\n${notes.filter(Boolean).join(' ') || 'q quit  space pause  s sort  d drain'}`,
    )
  }
  const refresh = async (): Promise<void> => {
    try {
      last = { frame: await look(app), at: performance.now() }
      trouble = ''
    } catch {
      trouble = 'The database does not answer.'
    }
  }
  const drain = async (named: string): Promise<void> => {
    await drainNamed(app, named).then(refresh, (error: Error) => {
      refused = error.message
    })
    draw()
  }
  const press = (key: string): void => {
    refused = ''
    if (key === '\u0003') ended.abort()
    else if (typed !== undefined) {
      if (key === '\r' || key === '\n') {
        const named = typed.trim()
        typed = undefined
        if (named !== '') void drain(named)
      } else if (key === '\u001b') typed = undefined
      else typed = key === '\u007f' ? typed.slice(0, -1) : typed + key
    } else if (key === 'q') ended.abort()
    else if (key === ' ') held = !held
    else if (key === 's') order = names[(names.indexOf(order) + 1) % names.length] as Order
    else if (key === 'd') typed = ''
    draw()
  }
  const onKeys = (keys: string | Buffer): void => {
    for (const key of String(keys)) press(key)
  }
  stdin.setRawMode?.(true)
  stdin.on('data', onKeys)
  try {
    while (!ended.signal.aborted) {
      if (!held) await refresh()
      draw()
      await delay(everyMs, undefined, { signal: ended.signal }).catch(() => {})
    }
  } finally {
    stdin.off('data', onKeys)
    stdin.setRawMode?.(false)
    ;(stdin as NodeJS.ReadStream).pause()
    stdout.write('\n')
  }
}
