import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../test/helpers/free-port.ts'
import { type Check, NotRun, packaging, root, run, until } from './check.ts'

/** The user of the image. */
const uid = 10001

/**
 * The result of build-image.sh, as the image holds it, and a server from it: read-only, as a user without privileges.
 */
export const image: Check = async function* () {
  const work = await realpath(await mkdtemp(join(tmpdir(), 'ck-image-')))
  try {
    await chmod(work, 0o711)
    const [source, target, data] = [join(work, 'source'), join(work, 'image'), join(work, 'data')]
    await mkdir(source)
    const files = execFileSync('git', ['ls-files', '-z'], { cwd: root })
      .toString()
      .split('\0')
      .filter(Boolean)
    for (const file of files) await cp(join(root, file), join(source, file))
    await run('sh', [packaging('build-image.sh'), source, target], { maxBuffer: 1e8 })
    await rm(source, { recursive: true })
    yield 'is built from a clean tree into an empty directory'

    const names = await readdir(target)
    assert.deepEqual(names.sort(), [
      'LICENSE',
      'bin',
      'data',
      'dist',
      'migrations',
      'node_modules',
      'package.json',
      'templates',
    ])
    const find = async (...what: string[]): Promise<string> =>
      (await run('find', [target, ...what], { maxBuffer: 1e8 })).stdout
    assert.equal(await find('-perm', '/6000'), '')
    assert.equal(await find('-perm', '/022', '-not', '-type', 'l'), '')
    assert.equal(await find('-path', '*/node_modules/*', '-name', '*.gyp*'), '')
    const { devDependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
    const installed = await readdir(join(target, 'node_modules'))
    for (const name of ['typescript', 'vite', 'vitest', 'playwright-core', 'pinned-node'])
      assert.ok(name in devDependencies && !installed.includes(name), name)
    yield 'holds no compiler, no cache and no file that lends rights'

    if (process.getuid?.() !== 0) throw new NotRun('as another user: this process is not root')
    await startsReadOnly(target, data)
    yield 'starts read-only as uid 10001 without capabilities, answers, and ends with code 0 on SIGTERM'
  } finally {
    await rm(work, { recursive: true, force: true })
  }
  const docker = await run('docker', ['info']).catch(() => undefined)
  if (!docker) throw new NotRun('docker build: there is no Docker daemon here')
  await run('docker', ['build', '-f', packaging('Dockerfile'), '-t', 'cellkeep:packaging', root])
  yield 'docker build'
}

const noMount = 99

/** In a mount namespace of its own, where the image is read-only. */
async function startsReadOnly(target: string, data: string): Promise<void> {
  await mkdir(data)
  const port = await freePort()
  const script = `mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit ${noMount}
    (cat /etc/passwd && echo cellkeep:x:${uid}:${uid}::/data:/usr/sbin/nologin) > "$2.passwd"
    chmod 644 "$2.passwd" && mount --bind "$2.passwd" /etc/passwd || exit ${noMount}
    cd "$1"
    exec setpriv --reuid ${uid} --regid ${uid} --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \\
      "$3" bin/cellkeep.js start`
  execFileSync('chown', [`${uid}:${uid}`, data])
  await chmod(data, 0o700)
  const health = healthCheck(await readFile(packaging('Dockerfile'), 'utf8'))
  const child = spawn('unshare', ['--mount', 'sh', '-c', script, 'sh', target, data, process.execPath], {
    env: { PATH: process.env.PATH, CELLKEEP_DATA_DIR: data, CELLKEEP_PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr?.on('data', (part) => {
    said += part
  })
  const ended = once(child, 'exit')
  try {
    await Promise.race([
      until('it answers', async () => (await fetch(`http://127.0.0.1:${port}/ready`)).ok, 120),
      ended.then(([code]) => {
        if (code === noMount) throw new NotRun(`read-only: mounting is not allowed here: ${said.trim()}`)
        throw new Error(`it ended with ${code}: ${said}`)
      }),
    ])
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
    assert.match(status, new RegExp(`^Uid:\\t${uid}\\t${uid}\\t`, 'm'))
    assert.match(status, /^CapBnd:\t0+$/m)
    await run(process.execPath, ['-e', health], { env: { CELLKEEP_PORT: String(port) } })
    child.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null])
  } finally {
    child.kill('SIGKILL')
  }
}

/** The program of HEALTHCHECK. */
const healthCheck = (dockerfile: string): string =>
  JSON.parse(/^ {2}CMD (\[.*\])$/m.exec(dockerfile)?.[1] as string)[2]
