import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'scripts/**/*.test.ts'],
    globalSetup: ['test/global-setup.ts'],
    pool: 'forks',
    // One more than the two cores there are at least: many tests wait for processes, timers and disks.
    maxWorkers: 3,
    testTimeout: 60_000,
    // A check of a whole clone is long; a test that fails once there is run again, and the report says so.
    retry: process.env.CI ? 1 : 0,
    hookTimeout: 60_000,
  },
})
