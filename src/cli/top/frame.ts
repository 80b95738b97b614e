import { counted } from '../../core/operation.ts'
import type { ClusterView } from '../../nodes/cluster.ts'
import type { NodeView } from '../../nodes/nodes.ts'
import { aligned } from '../shell/output.ts'

/** One reading of the nodes and the database. */
export type Frame = { at: string; cluster: ClusterView; nodes: (NodeView & { seen_s: number })[] }

type Node = Frame['nodes'][number]

/** The sort orders of the nodes, in the order in which the key `s` goes through them. */
export const orders = {
  name: (a: Node, b: Node) => (a.name < b.name ? -1 : 1),
  rate: (a: Node, b: Node) => b.info.rate - a.info.rate,
  p99: (a: Node, b: Node) => (b.info.p99_ms ?? 0) - (a.info.p99_ms ?? 0),
  memory: (a: Node, b: Node) => b.info.memory_mb - a.info.memory_mb,
} as const
export type Order = keyof typeof orders

/** A frame as text: the cluster, then a line for each node. */
export function frameText({ at, cluster, nodes }: Frame, order: Order): string {
  const rows = [...nodes].sort(orders[order]).map((one) => {
    const { info, state, marks, seen_s } = one
    const { open, idle, waiting, max } = info.pool
    return [
      one.name,
      one.id,
      one.version,
      one.alive ? state : 'silent',
      `${seen_s} s`,
      String(info.rate),
      info.p99_ms === null ? '-' : String(info.p99_ms),
      String(info.loop_ms),
      String(info.memory_mb),
      `${open - idle}/${max}${waiting > 0 ? ` +${waiting}` : ''}`,
      String(info.running),
      String(info.sockets),
      String(info.streams),
      [...marks.filter((mark) => mark !== 'silent'), ...info.warnings, info.reason]
        .filter(Boolean)
        .join(', '),
    ]
  })
  return `${clusterLines(at, cluster).join('\n')}\n\n${aligned([titles, ...rows])}`
}

const titles = 'NAME NODE VERSION STATE SEEN REQ/S P99MS LOOPMS MB POOL RUNNING SOCKETS STREAMS NOTES'.split(
  ' ',
)

function clusterLines(at: string, cluster: ClusterView): string[] {
  const { connections: of, lag_s, oldest_s, synchronous } = cluster
  const behind = lag_s === null ? '' : `, ${lag_s} s behind`
  const parts = [
    `${of.all} of ${counted(of.max, 'connection')}, ${of.active} active`,
    of.waiting > 0 && `${of.waiting} wait for a lock`,
    oldest_s !== null && `oldest transaction ${oldest_s} s`,
    `backlog ${cluster.backlog}${cluster.backlog === 1000 ? '+' : ''}`,
    counted(cluster.steps, 'step'),
    `jobs: ${cluster.jobs.join(', ') || 'none'}`,
  ]
  return [
    `${at}  ${cluster.is_standby ? 'STANDBY' : 'primary'} ${cluster.server}, PostgreSQL ${cluster.version}, timeline ${cluster.timeline ?? '?'}, ` +
      `${counted(cluster.replicas, 'replica')} (${synchronous} synchronous${behind})`,
    parts.filter(Boolean).join(', '),
  ]
}
