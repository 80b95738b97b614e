import { chmod, chown, mkdir, readdir, rmdir, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { alive, isRoot, query, serverProcesses, startChild, testDirectory } from '../../test/embedded.ts'
import { silentLog } from '../log/log.ts'
import { copyBundle, findBundle, linkLibraries } from './bundle.ts'
import { startEmbedded } from './embedded.ts'
import { preparePlace } from './place.ts'
import { barrierTo, databaseUser } from './user.ts'

const dir = await testDirectory()
const nobody = 65_534

/** The error that refuses a start. */
const refusalOf = (dataDir: string, postgresBin?: string) =>
  startEmbedded({ dataDir, postgresBin, role: 'serve', log: silentLog }).then(
    () => expect.unreachable('it started'),
    (error) => error,
  )

test('an ordinary user runs the database itself, in a data dir of mode 0700', async () => {
  const home = join(dir, 'home')
  await mkdir(home, { mode: 0o700 })
  const path = join(home, 'data')
  const programs = isRoot ? await programsForAnybody() : undefined
  const options = {
    dataDir: path,
    ...(isRoot && { uid: nobody }),
    ...(programs && { postgresBin: programs }),
  }
  if (isRoot) await chown(home, nobody, nobody)
  const child = await startChild(options)
  expect(child).toMatchObject({ event: 'ready', dataDir: path })
  const uid = isRoot ? nobody : process.getuid?.()
  for (const made of [path, join(path, 'db'), join(path, 'socket')])
    expect(await stat(made)).toMatchObject({ uid, mode: 0o40700 })
  expect(await query(child.connection, 'select 1 as n')).toEqual([{ n: 1 }])
  const pids = await serverProcesses(path)
  expect((await stat(`/proc/${pids[0]}`)).uid).toBe(uid)
  await child.close()
  expect(await alive(pids)).toEqual([])
})

test.runIf(isRoot)('the socket directory goes to another user with the database', async () => {
  const path = join(dir, 'given-away')
  await preparePlace({ dataDir: path })
  await mkdir(join(path, 'db'))
  for (const given of [nobody, 1]) {
    await chown(join(path, 'db'), given, given)
    const { socketDir, user } = await preparePlace({ dataDir: path })
    expect(user).toMatchObject({ uid: given })
    expect(await stat(socketDir)).toMatchObject({ uid: given, gid: given, mode: 0o40700 })
  }
})

test('root takes the data dir of the machine if the default one is out of reach, and says so', async () => {
  const hidden = join(dir, 'hidden')
  await mkdir(hidden, { mode: 0o700 })
  const notices: string[] = []
  const place = await preparePlace({
    dataDir: join(hidden, '.cellkeep'),
    dataDirIsDefault: true,
    machineDir: join(dir, 'machine'),
    onNotice: (text) => notices.push(text),
  })
  const wanted = join(isRoot ? dir : hidden, isRoot ? 'machine' : '.cellkeep')
  expect(place).toMatchObject({ dataDir: wanted, db: join(wanted, 'db'), socketDir: join(wanted, 'socket') })
  expect(notices).toEqual(
    isRoot ? [expect.stringContaining(`${wanted}, because PostgreSQL runs as the user`)] : [],
  )
  if (isRoot) expect(notices[0]).toContain(hidden)
})

test('root names the directory that bars the way to a configured data dir', async () => {
  const barred = join(dir, 'barred')
  await mkdir(barred, { mode: 0o700 })
  const started = preparePlace({ dataDir: join(barred, 'data') })
  if (isRoot)
    await expect(started).rejects.toMatchObject({
      reason: 'data_dir_unusable',
      exitCode: 78,
      message: expect.stringContaining(`chmod o+x ${barred}`),
    })
  else expect((await started).dataDir).toBe(join(barred, 'data'))
})

test('a data dir that root made beforehand gets only the execute bits', async () => {
  const path = join(dir, 'prepared')
  await mkdir(path, { mode: 0o700 })
  await preparePlace({ dataDir: path })
  expect((await stat(path)).mode & 0o777).toBe(isRoot ? 0o711 : 0o700)
})

test('a data dir that others may write is refused, with what to do, and nothing is made in it', async () => {
  const path = join(dir, 'shared')
  await mkdir(path)
  // A sticky directory too, as anybody could make the database there first.
  for (const mode of [0o777, 0o1777, 0o770]) {
    await chmod(path, mode)
    const refused = await refusalOf(path)
    expect(refused).toMatchObject({ reason: 'data_dir_unsafe', exitCode: 78 })
    expect(refused.message).toContain(`chmod go-w ${path}`)
  }
  expect(await readdir(path)).toEqual([])
})

test.skipIf(!isRoot)(
  'a data dir of somebody else is refused to root, and nothing is made in it',
  async () => {
    const path = join(dir, 'foreign')
    await mkdir(path)
    await chown(path, nobody, nobody)
    const refused = await refusalOf(path)
    expect(refused).toMatchObject({ reason: 'data_dir_unsafe', exitCode: 78 })
    expect(refused.message).toMatch(/belongs to uid 65534.*Run Cellkeep as that user/)
    expect(await readdir(path)).toEqual([])
  },
)

test('where TMPDIR cannot be used, the socket of a long path is in /tmp', async () => {
  const parent = join(dir, 'l'.repeat(90))
  await mkdir(parent, { mode: 0o711 })
  vi.stubEnv('TMPDIR', '/does/not/exist')
  onTestFinished(() => void vi.unstubAllEnvs())
  const { socketDir } = await preparePlace({ dataDir: join(parent, 'data') })
  onTestFinished(() => rmdir(socketDir))
  expect(dirname(socketDir)).toBe('/tmp')
})

test.skipIf(!isRoot)(
  'a volume that still belongs to root is refused with the chown for this user',
  async () => {
    for (const mode of [0o755, 0o700]) {
      const path = join(dir, `volume-${mode}`)
      await mkdir(path, { mode })
      const child = await startChild({ dataDir: path, uid: nobody })
      expect(child).toMatchObject({ event: 'failed', reason: 'data_dir_unusable' })
      expect(child.message).toContain(
        `it belongs to uid 0, and uid ${nobody} may not write there. Run Cellkeep as that user or, if no other uses the directory, run \`chown ${nobody} ${path}\`.`,
      )
      expect(await child.exited).toBe(78)
    }
  },
)

test('the barrier is the first directory that a user may not enter, following links', async () => {
  const outer = join(dir, 'outer')
  const inner = join(outer, 'inner')
  await mkdir(inner, { recursive: true })
  await chmod(outer, 0o700)
  await symlink(outer, join(dir, 'to-outer'))
  const stranger = { name: 'stranger', uid: 54_321, gid: 54_321 }
  const owner = { name: 'owner', uid: process.getuid?.() as number, gid: 54_321 }
  expect(await barrierTo(join(inner, 'yet', 'to', 'come'), stranger)).toBe(outer)
  expect(await barrierTo(join(dir, 'to-outer', 'x'), stranger)).toBe(join(dir, 'to-outer'))
  expect(await barrierTo(inner, owner)).toBe(undefined)
})

test('a data dir that is a file, or holds something else as db, is refused with 78', async () => {
  const file = join(dir, 'file')
  await writeFile(file, '')
  expect(await refusalOf(file)).toMatchObject({ reason: 'data_dir_unusable', exitCode: 78 })
  expect(await refusalOf(join(file, 'below'))).toMatchObject({ reason: 'data_dir_unusable', exitCode: 78 })

  const other = join(dir, 'other')
  await mkdir(join(other, 'db'), { recursive: true })
  await writeFile(join(other, 'db', 'notes.txt'), '')
  const user = await databaseUser('')
  if (user !== undefined) await chown(join(other, 'db'), user.uid, user.gid)
  const refused = await refusalOf(other)
  expect(refused).toMatchObject({ reason: 'data_dir_unusable', exitCode: 78 })
  expect(refused.message).toContain(`${join(other, 'db')} holds files, but no database`)
})

test('a database of another major version is refused with both versions and how to upgrade', async () => {
  const path = join(dir, 'old')
  await mkdir(join(path, 'db'), { recursive: true })
  await writeFile(join(path, 'db', 'PG_VERSION'), '12\n')
  const user = await databaseUser('')
  if (user !== undefined) await chown(join(path, 'db'), user.uid, user.gid)
  const refused = await refusalOf(path)
  expect(refused).toMatchObject({ reason: 'database_version', exitCode: 78 })
  expect(refused.message).toMatch(
    /made by PostgreSQL 12.* are PostgreSQL 1[5-8].*cellkeep backup.*cellkeep restore/s,
  )
})

test('a named directory without programs is refused with the names of both settings', async () => {
  const empty = join(dir, 'no-programs')
  await mkdir(empty)
  for (const bin of [empty, join(dir, 'nowhere')]) {
    const refused = await refusalOf(join(dir, 'unmade'), bin)
    expect(refused).toMatchObject({ reason: 'postgres_binaries_missing', exitCode: 78 })
    expect(refused.message).toContain(`CELLKEEP_POSTGRES_BIN=${bin}`)
    expect(refused.message).toContain('CELLKEEP_DATABASE_URL')
  }
})

/** If other users cannot reach this repository: a copy of its programs that they can reach. */
async function programsForAnybody(): Promise<string | undefined> {
  const bundle = await findBundle()
  const user = { name: 'nobody', uid: nobody, gid: nobody }
  if (bundle === undefined || (await barrierTo(bundle.native, user)) === undefined) return undefined
  const native = await copyBundle(bundle, join(dir, 'programs'))
  await linkLibraries(native, join(native, 'lib'))
  return join(native, 'bin')
}
