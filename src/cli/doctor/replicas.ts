import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../../config/table.ts'
import type { Database } from '../../db/db.ts'
import { Behind } from '../../db/servers/replica-fitness.ts'
import { Unfit } from '../../db/servers/unfit.ts'
import type { Finding } from './finding.ts'

/** How long to wait for a replica whose lag is within the allowed one. */
const patienceMs = 5_000

/** Findings about the configured replicas, each checked as a node would check it. */
export async function replicaFindings(
  db: Database,
  { database_replica_urls: urls }: Config,
): Promise<Finding[]> {
  if (urls.length === 0) return []
  await db.useReplicas()
  const { replicas } = db
  if (!replicas)
    return [
      {
        finding: 'replica_down',
        what: 'No replica is used, because the primary does not tell its position in the write-ahead log.',
        remedy:
          'Let the database role call pg_current_wal_flush_lsn(), or unset CELLKEEP_DATABASE_REPLICA_URLS.',
      },
    ]
  await Promise.race([
    Promise.all(replicas.all.map(({ judged }) => judged)),
    delay(patienceMs, undefined, { ref: false }),
  ])
  return replicas.all.flatMap(({ isFit, why }, index) => {
    if (isFit) return []
    const what = `Replica ${index + 1} is not used: ${why instanceof Error ? why.message : 'it has not caught up'}.`
    if (why instanceof Unfit && why.why === 'cluster')
      return [
        {
          finding: 'replica_other_cluster',
          what,
          remedy: 'Correct CELLKEEP_DATABASE_REPLICA_URLS: it must name standbys of this primary.',
        },
      ]
    if (why === undefined || why instanceof Behind)
      return [
        {
          finding: 'replica_behind',
          what,
          remedy:
            'Check on the replica whether replay is paused, whether long reads hold it up (max_standby_streaming_delay), and whether its disks are slow.',
        },
      ]
    return [
      {
        finding: 'replica_down',
        what,
        remedy: 'Start the replica, or correct or remove its URL. Meanwhile the primary answers its reads.',
      },
    ]
  })
}
