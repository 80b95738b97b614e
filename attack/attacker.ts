/** The attacking process: `attacker.ts URL SECONDS [NUMBER…]` runs the chosen attacks, or all. */
import { setPriority } from 'node:os'
import { attacks } from './attacks.ts'

const [url = '', seconds = '', ...only] = process.argv.slice(2)
const { hostname: host, port } = new URL(url)
// A low priority, so that the server is measured and not the competition for the processor.
setPriority(10)
const end = new AbortController()
// Not AbortSignal.timeout: neither its timer nor a connection that is not read keeps the process alive.
setTimeout(() => end.abort(), Number(seconds) * 1000)
const chosen = attacks.filter((_, index) => only.length === 0 || only.includes(String(index + 1)))
await Promise.all(
  chosen.map(async ({ name, run }) => {
    console.log(`${name}: ${await run({ host, port: Number(port) }, end.signal)}`)
  }),
)
