/**
 * `node scripts/package-check.ts`: packs the package, installs it into an empty project, and uses it there as a
 * consumer would, on the oldest supported Node, on 24 and on the pinned one. With `--types` it only compiles.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { runBlocks, writeBlocks } from './doc-blocks.ts'
import { environment, type Place, runEmbed, runStandalone, withServer } from './example-runs.ts'
import { checkTypes, compilers, makeProject, pack } from './package-project.ts'

/** Opens a live client on Node's own WebSocket, as the account that the example created. */
const liveProgram = `
import { createClient } from 'cellkeep/client'
import { createLive } from 'cellkeep/client/live'
const client = createClient({ url: process.env.URL, jar: true })
await client.account.login({ username: 'ada', password: 'correct horse battery' })
const live = createLive(client)
const { username } = await live.account_verify()
console.log(username + ' by socket')
live.close()
`

const nodes = ['22.18.0', '24', process.versions.node]

const work = await realpath(await mkdtemp(join(tmpdir(), 'ck-package-')))
let count = 0
try {
  // If the check runs as root, the user of the embedded database must be able to enter.
  await chmod(work, 0o711)
  const root = join(work, 'project')
  await mkdir(root)
  const tarball = await pack(work)
  await makeProject(root, tarball)
  await writeBlocks(root)
  for (const compiler of compilers)
    await passes(`types by ${compiler}, the declarations of the package checked too`, () =>
      checkTypes(root, compiler),
    )
  if (!process.argv.includes('--types')) await useAll(root, tarball)
  console.log(`${count} passed, 0 failed`)
} finally {
  await rm(work, { recursive: true, force: true })
}

/** Runs what was installed. */
async function useAll(root: string, tarball: string): Promise<void> {
  await passes('a project of `cellkeep new`: its tests, its types, its server', () =>
    useNewProject(root, tarball),
  )
  await passes('the code blocks of the pages', async () => {
    const directory = join(work, 'pages')
    await mkdir(directory)
    const place: Place = { root, node: process.execPath, directory }
    await withServer(place, async (url) => console.log(`${await runBlocks(place, url)} blocks`))
  })
  for (const version of nodes) {
    const node = await nodeBinary(version)
    const directory = join(work, `data-${version}`)
    await mkdir(directory)
    const place: Place = { root, node, directory }
    await passes(`cellkeep start on Node ${version}`, () => useServer(place))
    await passes(`the library on Node ${version}`, () => runEmbed(place))
  }
}

async function passes(what: string, check: () => Promise<void>): Promise<void> {
  await check()
  count += 1
  console.log(`ok: ${what}`)
}

/** Makes a project as a new user would. */
async function useNewProject(root: string, tarball: string): Promise<void> {
  const run = promisify(execFile)
  const path = join(work, 'notes')
  const cellkeep = join(root, 'node_modules/.bin/cellkeep')
  const { stdout } = await run(cellkeep, ['new', path], { cwd: root })
  assert.match(stdout, /npm install/)
  const options = ['--no-audit', '--no-fund', '--ignore-scripts']
  await run('npm', ['install', ...options], { cwd: path })
  const { dependencies } = JSON.parse(await readFile(join(path, 'package.json'), 'utf8'))
  assert.equal(dependencies.cellkeep, `file:${tarball}`, 'what was installed from a file is used again')
  for (const script of ['test', 'types'])
    await run('npm', ['run', script], { cwd: path }).catch(({ stdout }) => assert.fail(stdout))
  const place: Place = { root: path, node: process.execPath, directory: path }
  await withServer(place, async (url) => {
    const answer = await fetch(`${url}/api/rpc`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'note_labels' }),
    })
    assert.equal(answer.status, 401)
  })
}

/** npm installs only programs: no install scripts, no other registry. */
async function nodeBinary(version: string): Promise<string> {
  if (version === process.versions.node) return process.execPath
  const prefix = join(work, `node-${version}`)
  const platform = `${process.platform}-${process.arch}`
  const name = platform === 'darwin-arm64' ? `node-bin-${platform}` : `node-${platform}`
  const run = promisify(execFile)
  const options = ['--prefix', prefix, '--no-save', '--ignore-scripts']
  await run('npm', ['install', ...options, `${name}@${version}`], { cwd: work })
  const node = join(prefix, 'node_modules', name, 'bin', 'node')
  const { stdout } = await run(node, ['--version'])
  assert.ok(stdout.startsWith(`v${version}`), stdout)
  return node
}

/** Runs the standalone example and a live client on `cellkeep start` in an empty directory. */
async function useServer(place: Place): Promise<void> {
  await withServer(place, async (url) => {
    const printed = await runStandalone(place, url, join(place.directory, '.cellkeep', 'bootstrap_token'))
    assert.match(printed, /^Deleted cell/m)
    const { stdout } = await promisify(execFile)(place.node, ['--input-type=module', '-e', liveProgram], {
      cwd: place.root,
      env: { ...environment(place), URL: url },
    })
    assert.match(stdout, /^ada by socket$/m)
    assert.match(await offerUpgrade(url), /"result":\{"cells":\[/)
  })
}

/** The answer to a call that offers an upgrade, as calls of Java's client do; its body follows its head. */
async function offerUpgrade(url: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'cell_list' })
  socket.write(
    `POST /api/rpc HTTP/1.1\r\nHost: ${hostname}\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
  )
  setTimeout(() => socket.write(body), 50)
  return await text(socket)
}
