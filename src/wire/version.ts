import { readFileSync } from 'node:fs'

/** The version of the package; the path holds for the sources and for dist. */
export const version: string = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
).version
