import { chmod, copyFile, mkdir, readdir, readlink, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { testDirectory } from '../../test/embedded.ts'
import { findBinaries } from './binaries.ts'
import { copyBundle, findBundle, linkLibraries } from './bundle.ts'
import { databaseUser } from './user.ts'

const dir = await testDirectory()
const user = await databaseUser('')

/** The package as npm leaves it without install scripts: the links to libraries are missing. */
async function unlinkedBundle(name: string) {
  const bundle = await findBundle()
  if (bundle === undefined) throw new Error('npm installed no bundled PostgreSQL for this platform')
  const native = await copyBundle(bundle, join(dir, name))
  for (const entry of await readdir(join(native, 'lib'), { withFileTypes: true }))
    if (entry.isSymbolicLink()) await rm(join(native, 'lib', entry.name))
  return { ...bundle, native }
}

test('the bundled programs run where no install script made their links, and nothing is written beside them', async () => {
  const bundle = await unlinkedBundle('unlinked')
  const before = await readdir(join(bundle.native, 'lib'))
  const libDir = join(dir, 'lib')
  const found = await findBinaries({ libDir, user, bundle })
  expect(found.postgres).toBe(join(bundle.native, 'bin', 'postgres'))
  expect(found.major).toBe(18)
  expect(await readdir(join(bundle.native, 'lib'))).toEqual(before)
  // Without the links, the same programs do not start.
  await expect(findBinaries({ postgresBin: join(bundle.native, 'bin'), libDir, user })).rejects.toMatchObject(
    {
      reason: 'postgres_binaries_missing',
      message: expect.stringContaining('shared libraries'),
    },
  )
})

test('links to libraries that moved are made again, and others kept', async () => {
  const native = join(dir, 'package', 'native')
  const libDir = join(dir, 'links')
  await mkdir(native, { recursive: true })
  const link = (source: string) =>
    writeFile(
      join(native, 'pg-symlinks.json'),
      JSON.stringify([{ source: `native/lib/${source}`, target: 'native/lib/libpq.so' }]),
    )
  for (const source of ['libpq.so.5', 'libpq.so.6', 'libpq.so.6']) {
    await link(source)
    await linkLibraries(native, libDir)
    expect(await readlink(join(libDir, 'libpq.so'))).toBe(join(native, 'lib', source))
    expect(await readdir(libDir)).toEqual(['libpq.so'])
  }
})

test('programs without the right to run them are copied to where they can be', async () => {
  const bundle = await unlinkedBundle('not-runnable')
  for (const program of ['postgres', 'initdb']) await chmod(join(bundle.native, 'bin', program), 0o644)
  const libDir = join(dir, 'copied')
  for (const time of ['first', 'again']) {
    const found = await findBinaries({ libDir, user, bundle })
    expect([time, found.postgres]).toEqual([
      time,
      join(libDir, `postgresql-${bundle.version}`, 'native', 'bin', 'postgres'),
    ])
  }
})

test('instead of a broken bundle a PostgreSQL of the machine is used, with the reason; without one the refusal names it', async () => {
  const bin = join(dir, 'broken', 'native', 'bin')
  await mkdir(bin, { recursive: true })
  for (const program of ['postgres', 'initdb']) {
    await writeFile(join(bin, program), '#!/nonexistent/loader\n')
    await chmod(join(bin, program), 0o755)
  }
  const notices: string[] = []
  const bundle = { native: join(dir, 'broken', 'native'), version: '0' }
  const found = await findBinaries({
    libDir: join(dir, 'unused'),
    user,
    bundle,
    onNotice: (text) => notices.push(text),
  }).catch((error) => error)
  const why = /the bundled PostgreSQL does not run \(.*ENOENT\)/
  if (found instanceof Error) {
    expect(found).toMatchObject({ reason: 'postgres_binaries_missing', exitCode: 78 })
    expect(found.message).toMatch(why)
    expect(found.message).toMatch(/CELLKEEP_DATABASE_URL.*CELLKEEP_POSTGRES_BIN/)
  } else {
    expect(found.major).toBeGreaterThanOrEqual(15)
    expect(notices).toEqual([expect.stringMatching(why)])
  }
})

test('a PostgreSQL older than 15 is refused', async () => {
  const bin = join(dir, 'ancient')
  await mkdir(bin)
  await writeFile(join(bin, 'postgres'), '#!/bin/sh\necho "postgres (PostgreSQL) 14.11"\n')
  await copyFile(join(bin, 'postgres'), join(bin, 'initdb'))
  await Promise.all(['postgres', 'initdb'].map((program) => chmod(join(bin, program), 0o755)))
  await expect(findBinaries({ postgresBin: bin, libDir: join(dir, 'unused'), user })).rejects.toMatchObject({
    exitCode: 78,
    message: expect.stringMatching(/holds PostgreSQL 14.*CELLKEEP_DATABASE_URL.*version 15 or newer/),
  })
})
