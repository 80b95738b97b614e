import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'scripts/**/*.test.ts'],
    globalSetup: ['test/global-setup.ts'],
    pool: 'forks',
    // One per core, where vitest would leave one idle: tests mostly wait for processes and disks.
    maxWorkers: 2,
    testTimeout: 60_000,
    // A check of a whole clone is long; a test that fails once there is run again, and the report says so.
    retry: process.env.CI ? 1 : 0,
    hookTimeout: 60_000,
  },
})
