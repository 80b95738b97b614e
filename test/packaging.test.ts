import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { commands } from '../src/cli/shell/groups.ts'
import { loadConfig } from '../src/config/file.ts'
import { envName } from '../src/config/reading.ts'
import { type Key, keys, settings } from '../src/config/table.ts'
import { serviceForFile } from './helpers/service.ts'

/** Whatever the files of packaging/ refer to must exist; `npm run test:packaging` runs them. */

const root = fileURLToPath(new URL('..', import.meta.url))
const files = globSync('packaging/**', { cwd: root }).filter((file) => statSync(join(root, file)).isFile())
const textOf = (file: string): string => readFileSync(join(root, file), 'utf8')
const found = (pattern: RegExp): string[][] =>
  files.flatMap((file) => [...textOf(file).matchAll(pattern)].map(([all, word]) => [file, word ?? all]))

const test = await serviceForFile({ audit_stream: true })

it('every setting that they name exists', () => {
  const names = keys.flatMap((key: Key) => [
    envName(key),
    ...(settings[key].secret ? [`${envName(key)}_FILE`] : []),
  ])
  const named = found(/\bCELLKEEP_[A-Z0-9_]+/g)
  expect(named.length).toBeGreaterThan(30)
  expect(named.filter(([, name]) => !names.includes(name as string))).toEqual([])
})

it('every path of the service that they name is answered', async () => {
  const paths = new Set(
    found(/(?<![\w.-])\/(?:health\/\w+|ready|api\/[\w/]+)/g).map(([, path]) => path as string),
  )
  expect([...paths]).toEqual(
    expect.arrayContaining(['/health/live', '/health/serving', '/api/account/verify']),
  )
  for (const path of paths) expect([path, (await fetch(test.url + path)).status]).not.toEqual([path, 404])
})

it('every command that they name exists', () => {
  const words = found(/(?:`|^(?:if ! |#\s+)?)cellkeep ([a-z][a-z-]+)/gm)
  expect(words.length).toBeGreaterThan(3)
  const names = commands.map(({ name }) => name)
  expect(words.filter(([, word]) => !names.includes(word as string))).toEqual([])
})

it('every file of the repository that they name exists', () => {
  const named = found(/(?<![\w/])(?:packaging|docs)\/[\w./-]*\w/g).map(([, path]) => path as string)
  const copied = /^cp -R (.*) "\$target"$/m.exec(textOf('packaging/build-image.sh'))?.[1]?.split(' ') ?? []
  expect(copied).toContain('bin')
  for (const path of [...named, ...copied.filter((path) => path !== 'dist')])
    expect([path, existsSync(join(root, path))]).toEqual([path, true])
})

it('a command beside the unit has its user, settings and keys, and leaves its directory closed', () => {
  const text = textOf('packaging/cellkeep.service')
  const [, command = ''] = /^# {3}(systemd-run (?:.*\\\n)*.*)/m.exec(text) ?? []
  const given = [...command.matchAll(/ -p (\S+)/g)].map(([, setting]) => setting as string)
  const ofUnit =
    text.match(
      /^(?:DynamicUser|StateDirectory|StateDirectoryMode|UMask|EnvironmentFile|LoadCredential)=.*/gm,
    ) ?? []
  expect(ofUnit).toHaveLength(7)
  expect(given.sort()).toEqual([...ofUnit, 'User=cellkeep'].sort())
})

it('the image has the Node of this repository', () => {
  const { version } = JSON.parse(textOf('tools/node/package.json'))
  const bases = found(/^FROM (\S+)/gm).map(([, base]) => base)
  expect(bases).toEqual(Array(2).fill(`node:${version}-bookworm-slim`))
})

it('the chart makes the manifests', () => {
  const values = { Values: parse(textOf('packaging/chart/values.yaml')), Release: { Name: 'cellkeep' } }
  const filled = (text: string): string =>
    text.replace(/\{\{ \.([\w.]+) \}\}/g, (_, path: string) => {
      const value = path
        .split('.')
        .reduce((at: unknown, key) => (at as Record<string, unknown>)?.[key], values)
      expect([path, typeof value]).not.toEqual([path, 'undefined'])
      return String(value)
    })
  const { images, resources } = parse(textOf('packaging/kubernetes/kustomization.yaml'))
  const [{ newName, newTag }] = images
  for (const file of resources) {
    const manifest = textOf(`packaging/kubernetes/${file}`).replace(
      'image: cellkeep\n',
      `image: ${newName}:${newTag}\n`,
    )
    const made = parse(filled(textOf(`packaging/chart/templates/${file}`)))
    delete made.metadata.annotations
    expect(made).toEqual(parse(manifest))
  }
})

it('the migration has the settings of the nodes that are not in the manifests', () => {
  const sourcesOf = (file: string) =>
    parse(textOf(`packaging/kubernetes/${file}`)).spec.template.spec.containers[0].envFrom
  expect(sourcesOf('job.yaml')).toEqual(sourcesOf('deployment.yaml'))
  expect(sourcesOf('job.yaml')).toHaveLength(1)
})

it.each(['deployment.yaml', 'job.yaml'])('%s takes a setting that depends on others', async (file) => {
  const [{ env }] = parse(textOf(`packaging/kubernetes/${file}`)).spec.template.spec.containers
  const given = env.filter(
    ({ name, value }: { name: string; value?: string }) => value && !name.endsWith('_FILE'),
  )
  const image = { CELLKEEP_HOST: '0.0.0.0', CELLKEEP_DATABASE_URL: 'postgres://db/cellkeep' }
  const settings = Object.fromEntries(given.map(({ name, value }: Record<string, string>) => [name, value]))
  const own = { CELLKEEP_PASSKEYS: 'true', CELLKEEP_COOKIE_KEYS: 'k'.repeat(43) }
  const { config } = await loadConfig({ env: { ...image, ...settings, ...own }, cwd: root, mode: 'command' })
  expect(config.passkeys).toBe(true)
})

it('a database that is still being made does not count as healthy', () => {
  const { services } = parse(textOf('packaging/compose.yml'), { merge: true })
  // During its initialisation the database listens only on its socket, and must not count as healthy yet.
  expect(services.database.healthcheck.test).toContain('127.0.0.1')
})

it('the compose file is complete: each secret, volume and dependency it names is declared', () => {
  const { services, secrets, volumes } = parse(textOf('packaging/compose.yml'), { merge: true })
  for (const service of Object.values<Record<string, never>>(services)) {
    const { depends_on = [], secrets: used = [], volumes: mounted = [] } = service
    const needed = Array.isArray(depends_on) ? depends_on : Object.keys(depends_on)
    expect(Object.keys(services)).toEqual(expect.arrayContaining(needed))
    expect(Object.keys(secrets)).toEqual(expect.arrayContaining(used))
    const named = (mounted as string[])
      .map((one) => one.split(':')[0] as string)
      .filter((one) => /^\w/.test(one))
    expect(Object.keys(volumes)).toEqual(expect.arrayContaining(named))
  }
})
