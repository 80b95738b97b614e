/**
 * `npm run test:packaging [name …]`: runs the files of packaging/ with the programs they are for. Installs missing
 * programs if it may, and reports which checks were not run, and why.
 */
import { parseArgs } from 'node:util'
import { NotRun } from './packaging/check.ts'
import { guide } from './packaging/guide.ts'
import { guidePatroni } from './packaging/guide-patroni.ts'
import { image } from './packaging/image.ts'
import { kubernetes } from './packaging/kubernetes.ts'
import { proxies } from './packaging/proxies.ts'
import { recovery } from './packaging/recovery.ts'
import { rollOut } from './packaging/roll-out.ts'
import { unit } from './packaging/unit.ts'

const checks = { unit, kubernetes, proxies, rollOut, recovery, guide, guidePatroni, image }

const { positionals } = parseArgs({ allowPositionals: true })
const unknown = positionals.filter((name) => !Object.hasOwn(checks, name))
if (unknown.length > 0)
  throw new Error(`There is no check ${unknown}; there are ${Object.keys(checks).join(', ')}.`)

for (const [name, check] of Object.entries(checks)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue
  try {
    for await (const passed of check()) console.log(`ok: ${name}: ${passed}`)
  } catch (error) {
    if (error instanceof NotRun) console.log(`not run: ${name}: ${error.message}`)
    else {
      console.log(`FAILED: ${name}: ${error instanceof Error ? error.stack : error}`)
      process.exitCode = 1
    }
  }
}
