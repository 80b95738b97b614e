import { setTimeout as delay } from 'node:timers/promises'
import { on } from '../helpers/twins.ts'
import type { PairEngine } from './engine-pair.ts'
import type { Acts, Scene } from './faults.ts'
import type { Node } from './fleet.ts'

type Pair = Scene<PairEngine>

/** Stops requiring the standby while it is away, so that writes continue. */
async function withoutStandby({ world: { engine } }: Pair, act: () => Promise<void>): Promise<void> {
  await delay(1_000)
  await engine.requireStandby(engine.primary, false)
  await act()
}

/** Ends the primary in this way, and the standby takes its place. */
const replacement =
  (end: (primary: PairEngine['primary']) => Promise<void>) =>
  async ({ world: { engine } }: Pair): Promise<void> => {
    await end(engine.primary)
    await engine.promote()
    await engine.rejoin()
  }

export const pairFaults: Acts<PairEngine> = {
  'primary-kill': {
    what: 'kill -9 of the primary, the standby is promoted',
    act: replacement((primary) => primary.kill()),
  },
  'primary-restart': {
    what: 'the primary is stopped, and started again after 2 s',
    act: async ({ world: { engine } }) => {
      await engine.primary.stop()
      await delay(2_000)
      await engine.restart()
    },
  },
  'primary-freeze': {
    what: 'SIGSTOP of the primary for 25 s, the standby is promoted after 3 s; both are reachable then',
    act: async ({ world, cells }) => {
      const { engine } = world
      const old = engine.primary
      await old.freeze()
      await delay(3_000)
      await engine.promote()
      const promoted = performance.now()
      await delay(22_000)
      await old.thaw()
      // Now it would accept writes without a standby, if any node sent one.
      await engine.requireStandby(old, false)
      await delay(2_000)
      // For a while the old primary is the only one that answers.
      engine.primary.wire.block(true)
      await delay(3_000)
      engine.primary.wire.block(false)
      const there = await on(old.url, `select data->>'call' as call from cellkeep.cell`)
      const calls = new Set(there.map(({ call }) => call))
      for (const { call, began } of cells.written)
        if (began > promoted && calls.has(call))
          world.violate('I14', `the replaced primary took the call ${call}`)
      await engine.rejoin()
    },
  },
  'primary-blink': {
    what: 'SIGSTOP of the primary until every node has found the promoted standby; then it does what it was sent',
    act: async ({ world: { engine, fleet } }) => {
      const old = engine.primary
      await old.freeze()
      await delay(500)
      await engine.promote()
      const opened = (one: Node) =>
        fleet.outcomes('cellkeep_db_connect_total', [one]).then(({ ok = 0 }) => ok)
      const before = await Promise.all(fleet.nodes.map(opened))
      // Before it has connected anew, a node cannot know that there is another primary.
      const know = async (): Promise<boolean> =>
        (await Promise.all(fleet.nodes.map(opened))).every((count, at) => count > (before[at] as number))
      const limit = performance.now() + 8_000
      let isKnown = false
      while (!isKnown && performance.now() < limit) isKnown = await know()
      if (isKnown) {
        await old.thaw()
        // Its commits no longer wait for the standby: if a caller still got an answer from it, that write would be
        // lost.
        await engine.requireStandby(old, false)
        await delay(2_000)
      } else await old.kill()
      await engine.rejoin()
    },
  },
  'primary-away': {
    what: 'for 4 s only the standby can be reached, which shows the past',
    act: async ({ world: { engine } }) => {
      await on(engine.standby.url, 'select pg_wal_replay_pause()')
      await delay(1_500)
      engine.primary.wire.block(true)
      await delay(4_000)
      engine.primary.wire.block(false)
      await on(engine.standby.url, 'select pg_wal_replay_resume()')
    },
  },
  switchover: {
    what: 'the primary is stopped, the standby is promoted',
    act: replacement((primary) => primary.stop()),
  },
  'standby-kill': {
    what: 'kill -9 of the standby, started again',
    act: async (scene) => {
      const { standby } = scene.world.engine
      await standby.kill()
      await withoutStandby(scene, () => standby.start())
    },
  },
  'standby-freeze': {
    what: 'SIGSTOP of the standby for 4 s',
    act: async (scene) => {
      const { standby } = scene.world.engine
      await standby.freeze()
      await withoutStandby(scene, async () => {
        await delay(3_000)
        await standby.thaw()
      })
    },
  },
  'commit-cancelled': {
    what: 'with the standby away the waits of commits are cancelled, then the primary is lost',
    act: async (scene) => {
      const { engine } = scene.world
      await engine.standby.kill()
      // Repeated, so that rows are also numbered and delivered that the promoted standby will not have.
      for (let n = 0; n < 40; n++) {
        await delay(50)
        await on(
          engine.primary.url,
          `select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`,
        )
      }
      await replacement(async (primary) => {
        await primary.kill()
        await engine.standby.start()
      })(scene)
    },
  },
}

/** Faults of the primary, with either engine. */
export const primaryFaults: Acts = {
  'bus-cut': {
    what: 'the connections for signals of all nodes are ended, ten times',
    act: async ({ world: { engine } }) => {
      for (let n = 0; n < 10; n++) {
        await on(
          engine.primary.url,
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'cellkeep bus'`,
        )
        await delay(500)
      }
    },
  },
  'backends-terminated': {
    what: 'pg_terminate_backend of half of the connections, ten times',
    act: async ({ world: { engine } }) => {
      for (let n = 0; n < 10; n++) {
        await on(
          engine.primary.url,
          `select pg_terminate_backend(pid) from pg_stat_activity
           where backend_type = 'client backend' and pid <> pg_backend_pid() and random() < 0.5`,
        )
        await delay(200)
      }
    },
  },
  migration: {
    what: 'a column and an index are added under load, and removed',
    act: async ({ world: { engine } }) => {
      const { url } = engine.primary
      await on(url, `set lock_timeout = '2500ms'`, 'alter table cellkeep.cell add column chaos integer')
      await on(url, 'create index concurrently chaos on cellkeep.cell (created_at, chaos)')
      await delay(1_000)
      await on(url, 'drop index concurrently cellkeep.chaos')
      await on(url, `set lock_timeout = '2500ms'`, 'alter table cellkeep.cell drop column chaos')
    },
  },
}
