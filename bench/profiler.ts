/**
 * Loaded into a server (`--import`): on SIGUSR2 it begins a CPU profile of its main thread, and on the next one writes
 * it to the file in `BENCH_PROFILE`.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'

const path = process.env.BENCH_PROFILE
if (path && process.argv[1]?.endsWith('cellkeep.js')) {
  const inspector = new Session()
  inspector.connect()
  let isRunning = false
  process.on('SIGUSR2', async () => {
    isRunning = !isRunning
    if (isRunning) {
      await inspector.post('Profiler.enable')
      await inspector.post('Profiler.setSamplingInterval', { interval: 200 })
      await inspector.post('Profiler.start')
      return
    }
    const { profile } = await inspector.post('Profiler.stop')
    writeFileSync(`${path}.part`, JSON.stringify(profile))
    renameSync(`${path}.part`, path)
  })
}
