import type pg from 'pg'
import type { Clock } from '../clock.ts'
import { type Admission, type InForce, inForce, type Limits, requireLimits } from './admission.ts'
import { Unfit } from './unfit.ts'

type Answer = InForce & {
  in_recovery: boolean
  cluster: string | null
  timeline: number
  replayed: number
  clock_ms: number
}

/**
 * A standby knows its timeline from its last restart point, or from the server that it follows, which only roles with
 * pg_monitor may see. If its timeline diverged from the primary's, positions in its log stand for other commits.
 */
const question = `select pg_is_in_recovery() as in_recovery, (select id::text from cluster) as cluster,
  greatest(
    (select timeline_id from pg_control_checkpoint()),
    (select min_recovery_end_timeline from pg_control_recovery()),
    (select received_tli from pg_stat_wal_receiver)) as timeline,
  (pg_last_wal_replay_lsn() - '0/0')::bigint as replayed,
  extract(epoch from clock_timestamp())::float8 * 1000 as clock_ms,
  ${inForce}`

/** Expiry is judged by the clock of the server that answers. */
const skewMaxMs = 5_000

type Known = Pick<Admission, 'timeline' | 'cluster'>

/** Rejects with `Unfit` if this is no standby of that primary. */
export async function judgeStandby(client: pg.Client, primary: Known): Promise<Answer> {
  const answer = (await client.query<Answer>(question)).rows[0] as Answer
  if (!answer.in_recovery) throw new Unfit('read_only', 'the server is not a standby: it accepts writes')
  if (answer.cluster !== primary.cluster)
    throw new Unfit('cluster', 'the server holds another database than the primary')
  if (answer.timeline !== primary.timeline)
    throw new Unfit(
      'timeline',
      `the server is on timeline ${answer.timeline}, the primary on ${primary.timeline}. After a fail-over, a standby may take minutes to report its new timeline unless the role has pg_monitor`,
    )
  return answer
}

/** Rejects with `Unfit` also if its limits are not in force; resolves to the place that it has replayed. */
export async function judgeReplica(
  client: pg.Client,
  limits: Limits,
  primary: Known,
  clock: Pick<Clock, 'now'>,
): Promise<number> {
  const answer = await judgeStandby(client, primary)
  if (Math.abs(answer.clock_ms - clock.now()) > skewMaxMs)
    throw new Unfit('settings', 'the clock of the server differs from that of the primary by more than 5 s')
  requireLimits(answer, limits)
  return answer.replayed
}
