import { setTimeout as delay } from 'node:timers/promises'
import { on } from '../helpers/twins.ts'
import type { Replica } from './engine.ts'
import type { Fault, Scene } from './faults.ts'

const replicaOf = ({ world: { engine }, random }: Scene): Replica =>
  engine.replicas[Math.floor(random() * engine.replicas.length)] as Replica

// Counted as faults of the database: a change of primary copies the replicas anew, so they must not be under another
// fault then.
export const replicaFaults: Record<string, Fault> = {
  'replica-kill': {
    part: 'database',
    what: 'kill -9 of a replica, started again after 2 s',
    act: async (scene) => {
      const replica = replicaOf(scene)
      await replica.kill()
      await delay(2_000)
      await replica.start()
    },
  },
  'replica-freeze': {
    part: 'database',
    what: 'SIGSTOP of a replica for 4 s',
    act: async (scene) => {
      const replica = replicaOf(scene)
      await replica.freeze()
      await delay(4_000)
      await replica.thaw()
    },
  },
  'replica-behind': {
    part: 'database',
    what: 'a replica falls 30 s behind',
    act: async (scene) => {
      const { url } = replicaOf(scene)
      await on(url, 'select pg_wal_replay_pause()')
      await delay(30_000)
      await on(url, 'select pg_wal_replay_resume()')
    },
  },
  'replica-stutter': {
    part: 'database',
    what: 'every replica stops replaying for up to 500 ms, twenty times',
    act: async ({ world: { engine }, random }) => {
      for (let n = 0; n < 20; n++)
        for (const verb of ['pause', 'resume']) {
          for (const { url } of engine.replicas) await on(url, `select pg_wal_replay_${verb}()`)
          await delay(500 * random())
        }
    },
  },
}

export const poolerFaults: Record<string, Fault> = {
  'pooler-restart': {
    part: 'wire',
    what: 'the poolers are stopped and started again',
    act: async ({ world: { engine } }) => {
      await Promise.all(engine.poolers.map((pooler) => pooler.restart()))
    },
  },
}
