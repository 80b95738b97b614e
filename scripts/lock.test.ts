import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

type Locked = { link?: true; integrity?: string; resolved?: string; dev?: true; optional?: true }

const json = (path: string) =>
  JSON.parse(readFileSync(fileURLToPath(new URL(`../${path}`, import.meta.url)), 'utf8'))
const packages: Record<string, Locked> = json('package-lock.json').packages
const { version, optionalDependencies } = json('tools/node/package.json')

it('every package that is installed has its hash in the lock file, and no address', () => {
  const installed = Object.entries(packages).filter(
    ([path, { link }]) => path.includes('node_modules/') && !link,
  )
  expect(installed.length).toBeGreaterThan(50)
  expect(installed.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))).toEqual([])
  expect(installed.filter(([, { resolved }]) => resolved)).toEqual([])
})

it('the pinned Node is locked for every platform, and only for development', () => {
  expect(Object.keys(optionalDependencies).length).toBe(5)
  for (const [name, wanted] of Object.entries(optionalDependencies)) {
    expect(wanted).toBe(version)
    const locked = packages[`node_modules/${name}`]
    expect(locked).toMatchObject({ version, dev: true, optional: true })
    // After an update of Node, remove the `bin` of these packages from package-lock.json; tools/node/node says why.
    expect(locked).not.toHaveProperty('bin')
  }
  expect(process.versions.node).toBe(version)
})
