/** The attacking process: runs the attacks of its command line against a URL for so many seconds. */
import { setPriority } from 'node:os'
import { attacks } from './attacks.ts'

const [url = '', seconds = '', ...only] = process.argv.slice(2)
const { hostname: host, port } = new URL(url)
// What is measured is the server, not who gets the processor.
setPriority(10)
const end = new AbortController()
// A signal's own timer, and connections that are not read, would not keep the process.
setTimeout(() => end.abort(), Number(seconds) * 1000)
const chosen = attacks.filter((_, index) => only.length === 0 || only.includes(String(index + 1)))
await Promise.all(
  chosen.map(async ({ name, run }) => {
    console.log(`${name}: ${await run({ host, port: Number(port) }, end.signal)}`)
  }),
)
