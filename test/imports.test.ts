import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

/** Imports point one way, types included, since readers follow those too. */

const root = fileURLToPath(new URL('..', import.meta.url))

type Import = { from: string; to: string; isType: boolean }

const statement =
  /^(?:import|export)\s+(type\s+)?([^'"`;]*?)\s*from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/gm

/** Every import of a file; targets inside the repository are paths from the root. */
function importsOf(from: string): Import[] {
  return [...readFileSync(join(root, from), 'utf8').matchAll(statement)].map((match) => {
    const [, typeWord, clause = '', named, bare, dynamic] = match
    const to = (named ?? bare ?? dynamic) as string
    return {
      from,
      to: to.startsWith('.') ? relative(root, join(root, dirname(from), to)) : to,
      isType: typeWord !== undefined || isAllTypes(clause),
    }
  })
}

/** Whether it is `{ type A, type B }`: such an import is erased at run time. */
function isAllTypes(clause: string): boolean {
  const names = /^\{([^}]*)\}$/
    .exec(clause)?.[1]
    ?.split(',')
    .map((name) => name.trim())
  return names?.filter(Boolean).every((name) => name.startsWith('type ')) ?? false
}

const files = globSync('src/**/*.ts', { cwd: root }).filter((file) => !file.endsWith('.test.ts'))
const all = files.flatMap(importsOf)
const local = all.filter(({ to }) => to.startsWith('src/'))
const loaded = local.filter(({ isType }) => !isType)

const features = [
  'accounts',
  'actors',
  'audit-log',
  'backup',
  'bootstrap',
  'cells',
  'cleanup',
  'delivery',
  'discovery',
  'email',
  'import',
  'invites',
  'nodes',
  'offers',
  'oidc',
  'passkeys',
  'recovery',
  'roles',
  'sealing',
  'second-factor',
  'sessions',
  'settings',
  'sign-in',
  'tickets',
  'tokens',
  'verify',
]

/** The layers from the bottom up; a file belongs to the first pattern that matches. */
const layers: [name: string, files: RegExp][] = [
  ['errors, log, observe and wire', /^src\/(errors|error-codes|reasons|(log|observe|wire)\/.*)\.ts$/],
  [
    'what is declared: events, registries, settings',
    /^src\/(events|event-fields|notifications|(registry|config)\/.*|audit\/audit|auth\/identity|core\/method)\.ts$/,
  ],
  ['files and database', /^src\/(files|db|embedded)\//],
  [
    'what a service consists of',
    /^src\/((auth|audit|limits|realtime)\/|sealing\/sealing\.ts|oidc\/relying-party\.ts)/,
  ],
  ['core', /^src\/core\//],
  ['features', new RegExp(`^src/(${features.join('|')})/`)],
  ['tables', /^src\/(actions|routes|operations)\.ts$/],
  ['surfaces', /^src\/(http\/(?!listen\.ts|node\.ts)|websocket\/|audit-stream\/)/],
  ['service', /^src\/(service|compose-app|create-service|backing|metrics)\.ts$/],
  ['entries', /^src\/(http\/(listen|node)|index|cli\/.*|testing\/.*|client\/.*)\.ts$/],
]
const featureOf = (file: string): string | undefined => file.split('/')[1]
const layerOf = (file: string): number => layers.findIndex(([, pattern]) => pattern.test(file))
const shown = ({ from, to }: Import): string => `${from} imports ${to}`

/** `@scope/name` of `@scope/name/part`. */
const packageOf = (to: string): string => /^(@[^/]+\/)?[^/]+/.exec(to)?.[0] ?? to

describe('imports of src', () => {
  it('were found at all', () => {
    expect(files.length).toBeGreaterThan(50)
    expect(loaded).toContainEqual({ from: 'src/compose-app.ts', to: 'src/db/db.ts', isType: false })
    expect(local).toContainEqual({ from: 'src/client/client.ts', to: 'src/actions.ts', isType: true })
  })

  it('every file has its layer', () => {
    expect(files.filter((file) => layerOf(file) < 0)).toEqual([])
  })

  it('every folder is in the layers of ARCHITECTURE.md', () => {
    const table =
      /\| Layer \|[\s\S]*?\n\n/.exec(readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8'))?.[0] ?? ''
    const folders = new Set(files.filter((file) => file.split('/').length > 2).map(featureOf))
    expect([...folders].filter((folder) => !table.includes(`\`${folder}\``))).toEqual([])
  })

  it('name nothing of a layer above', () => {
    expect(local.filter(({ from, to }) => layerOf(to) > layerOf(from)).map(shown)).toEqual([])
  })

  it('the client takes only types from the rest', () => {
    const taken = loaded.filter(({ from, to }) => /^src\/client\//.test(from) && !/^src\/client\//.test(to))
    expect(taken.map(shown)).toEqual([])
    expect(
      all.filter(({ from, to, isType }) => /^src\/client\//.test(from) && !isType && !to.startsWith('src/')),
    ).toEqual([])
  })

  it('only its table imports a method, never another feature', () => {
    const tables = ['src/actions.ts', 'src/routes.ts', 'src/operations.ts']
    const methods = new Set(
      loaded
        .filter(({ from, to }) => tables.includes(from) && layers[layerOf(to)]?.[0] === 'features')
        .map(({ to }) => to),
    )
    expect(methods.size).toBeGreaterThan(10)
    const strangers = loaded.filter(
      ({ from, to }) => methods.has(to) && !tables.includes(from) && featureOf(from) !== featureOf(to),
    )
    expect(strangers.map(shown)).toEqual([])
  })

  it('packages are those that a consumer installs', () => {
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const installed = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })
    const packages = all.filter(
      ({ to, isType }) => !isType && !to.startsWith('src/') && !to.startsWith('node:'),
    )
    expect(packages.filter(({ to }) => !installed.includes(packageOf(to))).map(shown)).toEqual([])
  })

  it('nothing is loaded from outside src but the package itself', () => {
    const outside = all.filter(({ to }) => to.startsWith('..') || /^(test|bench|scripts|examples)\//.test(to))
    expect(outside.map(shown)).toEqual([])
  })

  it('no files import each other in a cycle', () => {
    const next = new Map(
      files.map((file) => [file, local.filter(({ from }) => from === file).map(({ to }) => to)]),
    )
    const done = new Set<string>()
    const rings: string[] = []
    const walk = (file: string, path: string[]): void => {
      if (path.includes(file)) rings.push([...path.slice(path.indexOf(file)), file].join(' → '))
      else if (!done.has(file)) for (const to of next.get(file) ?? []) walk(to, [...path, file])
      done.add(file)
    }
    for (const file of files) walk(file, [])
    expect(rings).toEqual([])
  })
})
