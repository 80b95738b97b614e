import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { version } from '../../src/wire/version.ts'
import { type Check, packaging, root, run } from './check.ts'
import { withNodes } from './nodes.ts'

/** roll-out.sh over two local nodes in place of hosts; the second of three names does not exist. */
export const rollOut: Check = async function* () {
  const said: string[] = []
  await withNodes(2, {}, async ({ dir, env, running, restart }) => {
    const bin = join(dir, 'bin')
    const log = join(dir, 'restarts')
    await mkdir(bin)
    const entry = `exec "${process.execPath}" "${root}bin/cellkeep.js" "$@"`
    await writeFile(join(bin, 'cellkeep'), `#!/bin/sh\n${entry}\n`)
    await chmod(join(bin, 'cellkeep'), 0o755)
    const roll = (hosts: string[], more: object) =>
      run(packaging('roll-out.sh'), [version, ...hosts], {
        cwd: dir,
        env: {
          ...env,
          PATH: `${bin}:${process.env.PATH}`,
          INSTALL: `echo "$host $version" >> "${log}"`,
          TIMEOUT: '5',
          ...more,
        },
      })
    // Each host is away for a while, although its version runs already.
    const stop = Object.entries(running).map(
      ([index, { pid }]) => `node${index}) kill ${pid}; tail --pid=${pid} -f /dev/null ;;`,
    )
    const INSTALL = `cellkeep nodes wait --ready 2 --timeout 0 >> "${log}"; case $host in ${stop.join(' ')} esac; touch "${dir}/$host.gone"`
    const rolling = roll(['node0', 'node1'], { INSTALL, TIMEOUT: '30' })
    for (const index of [0, 1]) {
      while (!existsSync(join(dir, `node${index}.gone`))) await Promise.race([delay(50), rolling])
      await delay(3000)
      await restart(index)
    }
    assert.match((await rolling).stdout, /^All 2 nodes run/m)
    assert.equal(await readFile(log, 'utf8'), '2 nodes of 2 ready.\n'.repeat(2))
    said.push('goes over all nodes, and takes none before the previous one is back')
    await writeFile(log, '')
    await assert.rejects(roll(['node0'], { CELLKEEP_DATABASE_URL: 'postgres://x@127.0.0.1:1/x' }), {
      code: 3,
      stderr: /cannot be reached/,
    })
    assert.equal(await readFile(log, 'utf8'), '')
    said.push('installs nothing while it cannot tell how many nodes are ready')
    const error = await roll(['node0', 'node1', 'gone', 'never'], {}).then(
      () => assert.fail('it went on'),
      (failure) => failure,
    )
    assert.match(error.stderr, /gone is not ready; the roll-out stops here, with 2 of 4 nodes/)
    assert.deepEqual((await readFile(log, 'utf8')).trim().split('\n'), [
      `node0 ${version}`,
      `node1 ${version}`,
      `gone ${version}`,
    ])
    said.push('stops at a node that is not ready in time')
  })
  yield* said
}
