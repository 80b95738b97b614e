import { execFileSync } from 'node:child_process'
import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createPrivateFile, readPrivateFile } from './private-file.ts'
import { openDirectory } from './safe-directory.ts'

const isRoot = process.getuid?.() === 0
const nobody = 65_534
let count = 0
const base = await mkdtemp(join(tmpdir(), 'ck-private-'))
afterAll(() => rm(base, { recursive: true }))
const fresh = () => join(base, `file${count++}`)

async function made(content: string, mode: number): Promise<string> {
  const path = fresh()
  await writeFile(path, content)
  await chmod(path, mode)
  return path
}

describe('a private file is read', () => {
  it.each([0o600, 0o400])('with mode %o, trimmed', async (mode) => {
    expect(await readPrivateFile(await made(' secret \n', mode))).toEqual({ content: 'secret' })
  })

  it('with exactly 4 KiB', async () => {
    expect(await readPrivateFile(await made('x'.repeat(4096), 0o600))).toEqual({ content: 'x'.repeat(4096) })
  })
})

describe('a private file is refused', () => {
  // Only root can open one that its owner may not read.
  const unreadable = isRoot ? [0o200] : []
  it.each([0o644, 0o640, 0o660, 0o604, 0o700, 0o4600, ...unreadable])('with mode %o', async (mode) => {
    expect(await readPrivateFile(await made('secret', mode))).toEqual({
      problem: `has mode ${mode.toString(8).padStart(4, '0')}; it must be 0600 or 0400`,
    })
  })

  it.each([
    ['empty', ''],
    ['blank', ' \n\t'],
  ])('when it is %s', async (_, content) => {
    expect(await readPrivateFile(await made(content, 0o600))).toEqual({ problem: 'is empty' })
  })

  it('when it is larger than 4 KiB', async () => {
    expect(await readPrivateFile(await made('x'.repeat(4097), 0o600))).toEqual({
      problem: 'is larger than 4 KiB',
    })
  })

  it('when it is a symbolic link, even to a good file', async () => {
    const path = fresh()
    await symlink(await made('secret', 0o600), path)
    expect(await readPrivateFile(path)).toEqual({ problem: 'is a symbolic link' })
  })

  it('when it is a directory or a pipe, without waiting', async () => {
    const directory = fresh()
    await mkdir(directory, { mode: 0o600 })
    expect(await readPrivateFile(directory)).toEqual({ problem: 'is not a regular file' })
    const pipe = fresh()
    execFileSync('mkfifo', ['-m', '600', pipe])
    expect(await readPrivateFile(pipe)).toEqual({ problem: 'is not a regular file' })
  })

  it('as missing when there is none', async () => {
    expect(await readPrivateFile(fresh())).toEqual({ problem: 'does not exist', missing: true })
  })
})

describe('a private file that somebody else may have put there', () => {
  it.skipIf(!isRoot)('is refused for its owner, and says what to do', async () => {
    const path = await made('planted', 0o600)
    await chown(path, nobody, nobody)
    expect(await readPrivateFile(path)).toEqual({
      problem: `belongs to uid ${nobody}, but this process runs as uid 0`,
      remedy: expect.stringContaining(`chown 0 ${path}`),
    })
  })

  it.each([0o777, 0o770, 0o722])('is refused in a directory of mode %o, where none is made', async (mode) => {
    const directory = fresh()
    const path = join(directory, 'token')
    await createPrivateFile(path, 'planted')
    await chmod(directory, mode)
    expect(await readPrivateFile(path)).toEqual({
      problem: `is in ${directory}, which can be written by other users (mode 0${mode.toString(8)})`,
      remedy: expect.stringContaining(`chmod go-w ${directory}`),
    })
    await expect(createPrivateFile(join(directory, 'other'), 'x')).rejects.toMatchObject({
      reason: 'unsafe_directory',
      exitCode: 78,
      message: expect.stringContaining(`chmod go-w ${directory}`),
    })
    expect(await readdir(directory)).toEqual(['token'])
    expect(await readPrivateFile(join(directory, 'none'))).toMatchObject({ missing: true })
  })

  it.skipIf(!isRoot)('is refused in a directory of somebody else, where none is made', async () => {
    const directory = fresh()
    const path = join(directory, 'token')
    await createPrivateFile(path, 'planted')
    await chown(directory, nobody, nobody)
    expect(await readPrivateFile(path)).toMatchObject({
      problem: expect.stringMatching(/^is in .* belongs to uid 65534/),
    })
    await expect(createPrivateFile(join(directory, 'other'), 'x')).rejects.toMatchObject({
      reason: 'unsafe_directory',
    })
  })

  it.skipIf(!isRoot)(
    'is refused, and others are not, where all may make files but replace none',
    async () => {
      const directory = fresh()
      await mkdir(directory)
      await chmod(directory, 0o1777)
      const [own, planted] = [join(directory, 'own'), join(directory, 'planted')]
      for (const path of [own, planted]) expect(await createPrivateFile(path, 'x')).toBe(true)
      await chown(planted, nobody, nobody)
      expect(await readPrivateFile(own)).toEqual({ content: 'x' })
      expect(await readPrivateFile(planted)).toMatchObject({ problem: expect.stringContaining('belongs') })
    },
  )

  it.skipIf(process.platform !== 'linux')(
    'never replaces a file of the directory that was checked',
    async () => {
      const directory = fresh()
      await createPrivateFile(join(directory, 'token'), 'ours')
      const opened = await openDirectory(directory)
      await rename(directory, `${directory}.away`)
      await createPrivateFile(join(directory, 'token'), 'planted')
      expect(await readFile(opened.within('token'), 'utf8')).toBe('ours')
      await opened.close()
    },
  )
})

describe('a private file is made', () => {
  it('with mode 0600 in a directory of 0700', async () => {
    const directory = fresh()
    const path = join(directory, 'token')
    expect(await createPrivateFile(path, 'secret\n')).toBe(true)
    expect((await stat(path)).mode & 0o7777).toBe(0o600)
    expect((await stat(directory)).mode & 0o7777).toBe(0o700)
    expect(await readFile(path, 'utf8')).toBe('secret\n')
    expect(await readdir(directory)).toEqual(['token'])
  })

  it('never over an existing one, nor through a symbolic link', async () => {
    const path = await made('first', 0o644)
    expect(await createPrivateFile(path, 'second')).toBe(false)
    expect(await readFile(path, 'utf8')).toBe('first')
    expect((await stat(path)).mode & 0o7777).toBe(0o644)

    const target = fresh()
    const linked = fresh()
    await symlink(target, linked)
    expect(await createPrivateFile(linked, 'second')).toBe(false)
    await expect(stat(target)).rejects.toThrow(/ENOENT/)
  })

  it('by exactly one of many who try, and all read its content', async () => {
    const path = join(fresh(), 'token')
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const won = await createPrivateFile(path, `secret${index}`)
        return { won, index, file: await readPrivateFile(path) }
      }),
    )
    const winner = outcomes.filter(({ won }) => won)
    expect(winner).toHaveLength(1)
    for (const { file } of outcomes) expect(file).toEqual({ content: `secret${winner[0]?.index}` })
  })

  it('all at once: whoever looks meanwhile sees no file or the whole content', async () => {
    for (let round = 0; round < 20; round++) {
      const path = fresh()
      let done = false
      const looks = Array.from({ length: 3 }, async () => {
        const seen = []
        while (!done) seen.push(await readPrivateFile(path))
        return seen
      })
      await createPrivateFile(path, 'secret').finally(() => {
        done = true
      })
      for (const file of (await Promise.all(looks)).flat()) {
        expect(file).toEqual('missing' in file ? expect.anything() : { content: 'secret' })
      }
    }
  })

  it('nowhere below a file, and says why', async () => {
    const path = join(await made('x', 0o600), 'sub', 'token')
    await expect(createPrivateFile(path, 'secret')).rejects.toMatchObject({ code: 'ENOTDIR' })
  })
})
