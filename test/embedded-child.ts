/**
 * A process that uses an embedded database: `node embedded-child.ts <options as JSON>`. It prints one JSON
 * event per line. It releases the database when its input ends, as it does when the test dies.
 */
import { once } from 'node:events'
import { startEmbedded } from '../src/embedded/embedded.ts'
import { StartError } from '../src/errors.ts'

const print = (event: object) => process.stdout.write(`${JSON.stringify(event)}\n`)
const { uid, ...options } = JSON.parse(process.argv[2] as string)
if (uid !== undefined) {
  process.setgroups?.([])
  process.setgid?.(uid)
  process.setuid?.(uid)
}
const line = (_fields: unknown, text?: string) => void print({ event: 'log', text })
try {
  const embedded = await startEmbedded({
    ...options,
    log: { debug: line, info: line, warn: line, error: line },
    onNotice: (text) => print({ event: 'notice', text }),
    onLost: ({ reason }) => print({ event: 'lost', reason }),
  })
  print({ event: 'ready', connection: embedded.connection, dataDir: embedded.dataDir })
  await once(process.stdin.resume(), 'end')
  await embedded.close()
} catch (error) {
  if (!(error instanceof StartError)) throw error
  print({ event: 'failed', reason: error.reason, message: error.message })
  process.exitCode = error.exitCode
}
