import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plugin } from 'vite'

/** The folder of the package that a module belongs to. */
const packageOf = /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//

/**
 * `plugin` notes the packages whose code ends up in a bundle, and `text` returns their licences: most of them allow a
 * copy of the code only together with their text.
 */
export function bundledLicences(): { plugin: Plugin; text(): string } {
  const folders = new Set<string>()
  return {
    plugin: {
      name: 'licences',
      generateBundle(_options, bundle) {
        for (const made of Object.values(bundle))
          for (const id of made.type === 'chunk' ? Object.keys(made.modules) : []) {
            const folder = packageOf.exec(id)?.[1]
            if (folder) folders.add(folder)
          }
      },
    },
    text: () =>
      [...folders]
        .map(notice)
        .sort()
        .join(`\n${'-'.repeat(72)}\n\n`),
  }
}

function notice(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one))
  if (!file)
    throw new Error(
      `${name} is in the console and has no licence file. Bundle another package, or add its text here.`,
    )
  return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`
}
