import { setTimeout as delay } from 'node:timers/promises'
import type { App } from '../core/app.ts'
import { counted } from '../core/operation.ts'
import { hasReason, StartError } from '../errors.ts'
import type { NodeView } from '../nodes/nodes.ts'
import { operations } from '../operations.ts'
import { numberIn, subcommand, WrongUsage } from './shell/command.ts'
import { type CommandService, cli, withService } from './with-service.ts'

const askMs = 500

const list = async (app: App): Promise<NodeView[]> => (await operations.nodes(app)).nodes

const wait = subcommand('nodes', {
  name: 'wait',
  usage: '--ready N [--version V] [--timeout S]',
  summary: 'Wait until N nodes are ready, as a roll-out does before it goes on.',
  details:
    'Exits with 0 as soon as they are ready, and with 1 after S seconds (default 60), or with 3 if the database cannot be\nreached by then.',
  options: { ready: { type: 'string' }, version: { type: 'string' }, timeout: { type: 'string' } },
  run: async ({ options: { ready: least, version, timeout = '60' }, out, io }) => {
    const [wanted, seconds] = [numberIn(least ?? ''), numberIn(timeout)]
    if (!Number.isInteger(wanted) || wanted < 1) throw new WrongUsage('--ready takes a number of nodes.')
    if (!(seconds >= 0)) throw new WrongUsage('--timeout takes a number of seconds.')
    const until = performance.now() + seconds * 1000
    const work = async ({ app }: CommandService): Promise<number> => {
      for (;;) {
        const ready = (await list(app)).filter(
          (one) => one.alive && one.state === 'ready' && (version ?? one.version) === one.version,
        ).length
        if (ready >= wanted || performance.now() >= until) {
          out.result({ ready }, `${counted(ready, 'node')} of ${wanted} ready.`)
          return ready >= wanted ? 0 : 1
        }
        await delay(askMs)
      }
    }
    for (;;) {
      try {
        return await withService(io, work)
      } catch (error) {
        if (!isAway(error) || performance.now() >= until) throw error
        await delay(askMs)
      }
    }
  },
})

/** Whether the database may soon answer, as after a restart or a fail-over. */
const isAway = (error: unknown): boolean =>
  error instanceof StartError
    ? ['db_unreachable', 'db_read_only'].includes(error.reason)
    : hasReason(error, 'service_unavailable')

const drain = subcommand('nodes', {
  name: 'drain',
  usage: 'NODE [--wait]',
  summary: operations.drainNode.doc,
  details:
    '--wait returns when the node has no request, WebSocket or stream left, and exits with 1 if the node is silent. A stop\ndrains a node too: use this command to examine a node while it runs, or to empty it long before you stop it.',
  options: { wait: { type: 'boolean' } },
  args: 1,
  run: ({ args: [named = ''], options, out, io }) =>
    withService(io, async ({ app }) => {
      const { id, name } = await drainNamed(app, named)
      if (options.wait) await emptied(app, id)
      out.result({ node_id: id, name }, `${name} (${id}) ${options.wait ? 'is drained' : 'is draining'}.`)
    }),
})

const resume = subcommand('nodes', {
  name: 'resume',
  usage: 'NODE',
  summary: operations.resumeNode.doc,
  args: 1,
  run: ({ args: [named = ''], out, io }) =>
    withService(io, async ({ app }) => {
      const { id, name } = await nodeNamed(app, named)
      await operations.resumeNode(app, { node_id: id }, cli)
      out.result({ node_id: id, name }, `${name} (${id}) serves again.`)
    }),
})

/** The group of `cellkeep nodes`, a command that derives from its operation. */
export const nodeCommands = {
  summary: 'The processes that serve this database: list, wait for, drain and resume them.',
  details:
    'NODE is the id of a node, or its name if no other node has the same name.\n\nExamples:\n  cellkeep nodes\n  cellkeep nodes wait --ready 3\n  cellkeep nodes drain web-2 --wait',
  commands: [wait, drain, resume],
}

export async function drainNamed(app: App, named: string): Promise<NodeView> {
  const node = await nodeNamed(app, named)
  await operations.drainNode(app, { node_id: node.id }, cli)
  return node
}

/** A node by id or name; if several share the name, silent ones are ignored. */
async function nodeNamed(app: App, named: string): Promise<NodeView> {
  const all = (await list(app)).filter(({ id, name }) => [id, name].includes(named.toLowerCase()))
  const alive = all.filter((one) => one.alive)
  const [found, ...others] = alive.length > 0 ? alive : all
  if (!found)
    throw new StartError('node_not_found', `There is no node ${named}; \`cellkeep nodes\` lists them.`, 1)
  if (others.length === 0) return found
  const ids = [found, ...others].map(({ id, pid, started_at }) => `  ${id}  pid ${pid}, since ${started_at}`)
  throw new StartError(
    'node_ambiguous',
    `Several nodes are named ${named}. Give the id of one:\n${ids.join('\n')}`,
    1,
  )
}

/** Waits until the node has no connections left, or has ended. For a silent node this cannot be known. */
async function emptied(app: App, node_id: string): Promise<void> {
  for (;;) {
    const found = (await list(app)).find(({ id }) => id === node_id)
    if (found && !found.alive)
      throw new StartError(
        'node_silent',
        `${found.name} (${node_id}) has been silent since ${found.seen_at}: it hangs, was killed or is cut off, so it is unknown whether it has connections left. Check its machine. If it comes back, it drains.`,
        1,
      )
    const { running = 0, sockets = 0, streams = 0 } = found?.info ?? {}
    if (!found || (found.state === 'drained' && running + sockets + streams === 0)) return
    await delay(askMs)
  }
}
