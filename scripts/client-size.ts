/** `node scripts/client-size.ts`: bundles `cellkeep/client` as a browser would load it, and holds it to its bar. */
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'

/** Minified, before compression (shared design, section 5: client bundle ≤ 2 kB). */
const barBytes = 2048

const input = fileURLToPath(new URL('../src/client/client.ts', import.meta.url))
const bundle = await rolldown({ input, platform: 'browser' })
const { output } = await bundle.generate({ minify: true })
const code = output[0].code
console.log(`cellkeep/client: ${code.length} bytes minified, ${gzipSync(code).length} bytes gzipped`)
if (output.length > 1 || output[0].imports.length > 0 || code.length > barBytes) {
  console.error(`It must be one file without imports, of at most ${barBytes} bytes minified.`)
  process.exitCode = 1
}
