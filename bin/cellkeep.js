#!/usr/bin/env node
// Plain JavaScript that every Node parses, so that an old one gets a sentence instead of a syntax error.
import { existsSync } from 'node:fs'

const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 18)) {
  console.error(
    `Cellkeep needs Node.js 22.18 or newer; this is ${process.versions.node}. In this repository, \`npm ci\` brings the right one and \`npm start\` uses it.`,
  )
  process.exitCode = 1
} else {
  // In the repository the sources run as they are; the published package has only dist.
  const source = new URL('../src/cli/main.ts', import.meta.url)
  const main = await import(
    existsSync(source) ? source.href : new URL('../dist/cli/main.js', import.meta.url).href
  )
  await main.run(process.argv.slice(2))
}
