/** `node scripts/client-size.ts`: bundles each client as for a browser and checks its size. */
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'

/** Bytes after minifying, before compression: a page that needs only calls loads at most 2 kB. */
const bars = { client: 2048, live: 4096, 'audit-stream': 4096 }

for (const [name, barBytes] of Object.entries(bars)) {
  const input = fileURLToPath(new URL(`../src/client/${name}.ts`, import.meta.url))
  const bundle = await rolldown({ input, platform: 'browser' })
  const { output } = await bundle.generate({ minify: true })
  const code = output[0].code
  console.log(`src/client/${name}.ts: ${code.length} bytes minified, ${gzipSync(code).length} bytes gzipped`)
  if (output.length > 1 || output[0].imports.length > 0 || code.length > barBytes) {
    console.error(`It must be one file without imports, of at most ${barBytes} bytes minified.`)
    process.exitCode = 1
  }
}
