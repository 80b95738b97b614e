import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What runs for ten seconds or more, however short its file: begun last, the whole run would wait for it. */
const long =
  /\/(offers|accounts)\/races|invite-races|\/test\/process\/|\/embedded\/|\/db\/(migration\/migrate|servers\/ready)|audit-stream\/(rows|endings)|database-down|\/testing\/cluster|backup\/backup|-sweep|many-grants/

/** Vitest goes by the durations of the last run, or in a clean clone by the size of the files. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const [first, then] = [true, false].map((is) => files.filter((file) => long.test(file.moduleId) === is))
    return [...(await super.sort(first ?? [])), ...(await super.sort(then ?? []))]
  }
}

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'console/**/*.test.ts', 'test/**/*.test.ts', 'scripts/**/*.test.ts'],
    globalSetup: ['test/global-setup.ts'],
    pool: 'forks',
    // A worker loads the sources once for all its files: loading them anew for each cost a third of the run.
    // A file that changes anything that others see has to put it right itself.
    isolate: false,
    // Node runs the sources as they are, as it does for users: nothing is compiled, and modules can't be mocked.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    sequence: { sequencer: LongFirst },
    // One more than the two cores there are at least: many tests wait for processes, timers and disks.
    maxWorkers: 3,
    // A net for tests that hang: on a busy machine one that starts several processes has taken over a minute.
    testTimeout: 180_000,
    // Test services write exceptions of handlers there, which many tests cause on purpose.
    silent: 'passed-only',
    hookTimeout: 180_000,
    // What a test waits for comes sooner or later: only a fault should use up this time, not a busy machine.
    expect: { poll: { timeout: 30_000, interval: 20 } },
  },
})
