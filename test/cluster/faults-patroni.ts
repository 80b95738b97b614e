import { setTimeout as delay } from 'node:timers/promises'
import type { PatroniEngine } from './engine-patroni.ts'
import type { Acts } from './faults.ts'

/** Patroni does the work; the acts only wait for it. */
export const patroniFaults: Acts<PatroniEngine> = {
  'leader-kill': {
    what: 'kill -9 of the leader and its Patroni, started again when another leads',
    act: async ({ world: { engine } }) => {
      const lost = engine.primary
      await lost.kill()
      await engine.replaced(lost)
      await lost.start()
    },
  },
  'leader-crash': {
    what: 'kill -9 of the server of the leader, whose Patroni goes on',
    act: async ({ world: { engine } }) => {
      const { crashes } = engine
      await engine.primary.killServer()
      await engine.settle()
      if (engine.crashes === crashes) engine.crashed()
    },
  },
  switchover: {
    what: '`patronictl switchover`',
    act: async ({ world: { engine } }) => {
      const { primary } = engine
      await Promise.all([
        engine.replaced(primary),
        engine.ctl('switchover', '--leader', primary.name, '--force'),
      ])
    },
  },
  'member-restart': {
    what: '`patronictl restart` of a member',
    act: async ({ world: { engine }, random }) => {
      const one = engine.members[Math.floor(random() * engine.members.length)]
      await engine.ctl('restart', one?.name as string, '--force')
    },
  },
  'leader-restart': {
    what: '`patronictl restart` of the leader',
    act: async ({ world: { engine } }) => {
      await engine.ctl('restart', engine.primary.name, '--force')
    },
  },
  'manager-kill': {
    what: 'kill -9 of the Patroni of the leader, started again after 5 s',
    act: async ({ world: { engine } }) => {
      const { primary } = engine
      await primary.killManager()
      await delay(5_000)
      await primary.start()
    },
  },
  'manager-paused': {
    what: '`patronictl pause`, kill -9 of the server of the leader, resumed after 15 s',
    act: async ({ world: { engine } }) => {
      const { crashes } = engine
      await engine.ctl('pause', '--wait')
      await engine.primary.killServer()
      await delay(15_000)
      await engine.ctl('resume', '--wait')
      await engine.settle()
      if (engine.crashes === crashes) engine.crashed()
    },
  },
  'etcd-away': {
    what: 'SIGSTOP of etcd for 15 s',
    act: async ({ world: { engine } }) => {
      engine.etcd.kill('SIGSTOP')
      await delay(15_000)
      engine.etcd.kill('SIGCONT')
    },
  },
}
