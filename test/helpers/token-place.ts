import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** A path for a bootstrap token, in a directory that is removed after the test file; call it at top level. */
export async function tokenPlace(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'ck-token-'))
  afterAll(() => rm(dir, { recursive: true, force: true }))
  return join(dir, 'bootstrap_token')
}
