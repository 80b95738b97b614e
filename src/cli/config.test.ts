import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import type { Environment } from '../config/reading.ts'
import type { ShownSetting } from '../config/show.ts'
import { keys as settingKeys } from '../config/table.ts'
import { config } from './config.ts'
import type { Command } from './shell/command.ts'
import { commands } from './shell/groups.ts'

const keys = commands.find(({ name }) => name === 'keys') as Command

const cwd = await mkdtemp(join(tmpdir(), 'ck-cli-'))
await writeFile(
  join(cwd, 'cellkeep.config.json'),
  '{"max_sessions":"off","trusted_proxies":["::1","10.0.0.0/8"]}',
)
afterAll(() => rm(cwd, { recursive: true }))

async function run(command: Command, args: string[], env: Environment = {}) {
  let stdout = ''
  let stderr = ''
  const code = await command.run(args, {
    stdin: process.stdin,
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
    env,
    cwd,
  })
  return { code, stdout, stderr }
}

const key = 'hunter2'.repeat(7)
const env = {
  CELLKEEP_DATABASE_URL: 'postgres://u:hunter2@db/app',
  CELLKEEP_COOKIE_KEYS: key,
  CELLKEEP_PORT: '8080',
  CELLKEEP_PROT: '1',
}

it('config prints every setting with value and source, secrets masked', async () => {
  const { code, stdout, stderr } = await run(config, [], env)
  expect(code).toBe(0)
  const lines = stdout.trimEnd().split('\n')
  expect(lines).toHaveLength(settingKeys.length + 1)
  const row = (name: string) => lines.find((line) => line.startsWith(`${name} `))?.split(/ {2,}/)
  expect(row('CELLKEEP_PORT')).toEqual(['CELLKEEP_PORT', '8080', 'env'])
  expect(row('CELLKEEP_DATABASE_URL')).toEqual(['CELLKEEP_DATABASE_URL', '***', 'env'])
  expect(row('CELLKEEP_COOKIE_KEYS')).toEqual(['CELLKEEP_COOKIE_KEYS', '***', 'env'])
  expect(row('CELLKEEP_SECRET_KEYS')?.[1]).toBe('(unset)')
  expect(row('CELLKEEP_DATABASE_REPLICA_URLS')?.[1]).toBe('(none)')
  expect(row('CELLKEEP_MAX_SESSIONS')).toEqual(['CELLKEEP_MAX_SESSIONS', 'off', 'file'])
  expect(row('CELLKEEP_TRUSTED_PROXIES')).toEqual(['CELLKEEP_TRUSTED_PROXIES', '::1,10.0.0.0/8', 'file'])
  expect(row('CELLKEEP_POSTGRES_BIN')).toEqual(['CELLKEEP_POSTGRES_BIN', '(unset)', 'default'])
  expect(row('CELLKEEP_CONFIG')?.[1]).toBe(join(cwd, 'cellkeep.config.json'))
  expect(stderr).toBe('warning: CELLKEEP_PROT is not a setting; did you mean CELLKEEP_PORT?\n')
  expect(stdout + stderr).not.toContain('hunter2')
})

it('config --json prints the same for machines', async () => {
  const { code, stdout } = await run(config, ['--json'], env)
  expect(code).toBe(0)
  const { settings, warnings }: { settings: ShownSetting[]; warnings: string[] } = JSON.parse(stdout)
  expect(settings.map(({ key }) => key)).toEqual(settingKeys)
  expect(settings).toContainEqual({ key: 'port', name: 'CELLKEEP_PORT', value: '8080', source: 'env' })
  expect(settings).toContainEqual({
    key: 'postgres_bin',
    name: 'CELLKEEP_POSTGRES_BIN',
    value: null,
    source: 'default',
  })
  expect(warnings).toHaveLength(1)
  expect(stdout).not.toContain('hunter2')
})

it('config refuses what start would refuse', async () => {
  await expect(run(config, [], { CELLKEEP_HOST: '0.0.0.0' })).rejects.toMatchObject({ exitCode: 78 })
  const wrong = [
    `{ roles: [{ name: 'reader', grant_paths: ['no_such_path'] }] }`,
    `{ actions: { cell_get: {} } }`,
    `{ require_second_factor: ['no_such_role'] }`,
  ]
  for (const [nth, options] of wrong.entries()) {
    const file = join(cwd, `wrong-${nth}.mjs`)
    await writeFile(file, `export default ${options}`)
    await expect(run(config, [], { CELLKEEP_CONFIG: file })).rejects.toMatchObject({ exitCode: 78 })
  }
})

it('keys generate prints another 43-character key each time', async () => {
  const [first, second] = [await run(keys, ['generate']), await run(keys, ['generate'])]
  expect(first).toEqual({ code: 0, stderr: '', stdout: expect.stringMatching(/^[A-Za-z0-9_-]{43}\n$/) })
  expect(second.stdout).not.toBe(first.stdout)
})

it.each([
  [config, ['x']],
  [config, ['--json', 'x']],
  [keys, []],
  [keys, ['make']],
  [keys, ['generate', 'x']],
])('wrong arguments end with usage and code 2', async (command, args) => {
  const { code, stdout, stderr } = await run(command, args)
  const usage = `cellkeep ${command === keys ? 'keys generate' : command.usage}`
  expect([code, stdout]).toEqual([2, ''])
  if (args.includes('--json'))
    expect(JSON.parse(stderr)).toMatchObject({ reason: 'wrong_usage', usage: [usage] })
  else expect(stderr).toContain(`Usage: ${usage}\n`)
})
