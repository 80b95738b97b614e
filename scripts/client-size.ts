/** `node scripts/client-size.ts`: bundles each client as for a browser and checks its size. */
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'

/** Bytes minified and compressed. */
const bars = { client: 1500, live: 2000, 'audit-stream': 1500, batch: 700, retry: 850 }

for (const [name, barBytes] of Object.entries(bars)) {
  const input = fileURLToPath(new URL(`../src/client/${name}.ts`, import.meta.url))
  const bundle = await rolldown({ input, platform: 'browser' })
  const { output } = await bundle.generate({ minify: true })
  const size = gzipSync(output[0].code).length
  console.log(`src/client/${name}.ts: ${output[0].code.length} bytes minified, ${size} bytes gzipped`)
  if (output.length > 1 || output[0].imports.length > 0 || size > barBytes) {
    console.error(`It must be one file without imports, of at most ${barBytes} bytes gzipped.`)
    process.exitCode = 1
  }
}
