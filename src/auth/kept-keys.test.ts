import { chmod, chown, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { keptKeys } from './kept-keys.ts'
import { randomToken } from './secrets.ts'

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'ck-keys-'))
})
afterEach(() => rm(dir, { recursive: true }))

const path = () => join(dir, 'cookie_keys')
const kept = (dataDir = dir) => keptKeys(dataDir, 'cookie_keys')
const refused = { reason: 'configuration', exitCode: 78 }

async function keep(content: string, mode = 0o600): Promise<void> {
  await writeFile(path(), content)
  await chmod(path(), mode)
}

it('the first start makes one random key, later ones read it', async () => {
  const [key, ...more] = await kept()
  expect(key).toMatch(/^[A-Za-z0-9_-]{43}$/)
  expect(more).toEqual([])
  expect((await stat(path())).mode & 0o7777).toBe(0o600)
  expect(await readFile(path(), 'utf8')).toBe(`${key}\n`)
  expect(await kept()).toEqual([key])
})

it('several first starts agree on one key', async () => {
  const rings = await Promise.all(Array.from({ length: 10 }, () => kept()))
  expect(new Set(rings.flat()).size).toBe(1)
})

it('the file takes the same list as the variable', async () => {
  const [a, b] = [randomToken(), randomToken()]
  await keep(` ${a} ,,${b},\n`, 0o400)
  expect(await kept()).toEqual([a, b])
})

const key = 'k'.repeat(43)
it.each([
  ['mode 0644', key, 0o644],
  ['no content', '', 0o600],
  ['only commas', ',,', 0o600],
  ['a short key', `${key},${'s'.repeat(31)}`, 0o600],
  ['a key twice', `${key},${key}`, 0o600],
  ['a key on each line', `${key}\n${'l'.repeat(43)}\n`, 0o600],
  ['more than 4 KiB', 'k'.repeat(5000), 0o600],
])('a file with %s ends the start and stays as it is', async (_, content, mode) => {
  await keep(content, mode)
  const error: Error = await kept().then(
    () => expect.unreachable(),
    (failure) => failure,
  )
  expect(error).toMatchObject(refused)
  expect(error.message).toContain(path())
  expect(error.message).not.toMatch(/k{20}|s{20}/)
  expect(await readFile(path(), 'utf8')).toBe(content)
  expect((await stat(path())).mode & 0o7777).toBe(mode)
})

it('a symbolic link ends the start, even a dangling one', async () => {
  const target = join(dir, 'elsewhere')
  await symlink(target, path())
  await expect(kept()).rejects.toMatchObject(refused)
  await expect(stat(target)).rejects.toThrow(/ENOENT/)
})

it.skipIf(process.getuid?.() !== 0)('a file that another user planted ends the start', async () => {
  await keep(key)
  await chown(path(), 65_534, 65_534)
  await expect(kept()).rejects.toMatchObject({
    ...refused,
    message: expect.stringMatching(/belongs to uid 65534.*chown 0/),
  })
})

it('a data dir that others may write gets no key', async () => {
  await chmod(dir, 0o777)
  await expect(kept()).rejects.toMatchObject({ exitCode: 78, reason: 'unsafe_directory' })
  expect(await readdir(dir)).toEqual([])
})

it('the secret keys are a ring of their own', async () => {
  const [own] = await keptKeys(dir, 'secret_keys')
  expect(await kept()).not.toContain(own)
  expect((await readdir(dir)).sort()).toEqual(['cookie_keys', 'secret_keys'])
})

it('a data dir that cannot be made ends the start', async () => {
  await keep(key)
  await expect(kept(join(path(), 'data'))).rejects.toMatchObject(refused)
})
