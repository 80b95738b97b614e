/**
 * Imports the Markdown files of this repository into a running `npm start`, using only the public API:
 *
 *     npm run example
 *
 * You can run it again: existing cells are compared, not created twice. Arguments, all optional:
 * the address, a username and a password.
 */
import assert from 'node:assert/strict'
import { glob, readFile } from 'node:fs/promises'
// In a project of your own: import … from 'cellkeep/client'
import { CellkeepError, type Client, createClient } from '../../src/client/client.ts'

const [url = 'http://127.0.0.1:4040', username = 'ada', password = 'correct horse battery'] =
  process.argv.slice(2)
const tokenFile = process.env.TOKEN_FILE ?? '.cellkeep/bootstrap_token'

const client = createClient({ url, jar: true })
await signIn(client)
const files = await importFiles(client)
await readBack(client, files)
await changeOne(client)
await deleteOne(client)

/** The first run creates the first account, with the token that the server wrote to a file; later runs log in. */
async function signIn(client: Client): Promise<void> {
  try {
    const { account } = await client.account.status()
    return console.log(`Already signed in as ${account.username}.`)
  } catch (error) {
    if (!(error instanceof CellkeepError) || error.reason !== 'authentication_required') throw error
    if (error.data.bootstrap_available) {
      const token = (await readFile(tokenFile, 'utf8')).trim()
      const { account } = await client.account.bootstrap({ token, username, password })
      return console.log(`Bootstrapped: ${account.username} is the first account, and an admin.`)
    }
  }
  await client.account.login({ username, password }).catch((error) => {
    if (error.reason !== 'invalid_credentials') throw error
    console.error(`${username} has another password. Run: npm run example -- ${url} <username> <password>`)
    process.exit(1)
  })
  console.log(`Signed in as ${username}.`)
}

type Imported = { path: string; data: { label: string; text: string } }

/** Stores one public cell per file. Its path, which only admins can set, identifies it in later runs. */
async function importFiles(client: Client): Promise<Imported[]> {
  const files: Imported[] = []
  let made = 0
  for await (const file of glob(['*.md', 'docs/*.md', 'examples/*/*.md'])) {
    const text = await readFile(file, 'utf8')
    const label = /^# (.+)$/m.exec(text)?.[1] ?? file
    files.push({ path: `import/${file}`, data: { label, text } })
  }
  for (const { path, data } of files) {
    const found = await client.try.cell_get({ path })
    if (!found.ok) {
      // The reasons of this method are typed: a misspelled one does not compile.
      if (found.error.reason !== 'cell_not_found') throw found.error
      await client.cell_create({ kind: 'document', visibility: 'public', path, data })
      made += 1
    } else if (found.result.cell.data.text !== data.text) {
      const { id, version } = found.result.cell
      await client.cell_update({ cell_id: id, data_patch: data, expected_version: version })
    }
  }
  console.log(`Imported ${files.length} files, ${made} of them new.`)
  return files
}

/** Lists every page without signing in: public cells need no credential. */
async function readBack(client: Client, files: Imported[]): Promise<void> {
  const anyone = createClient({ url })
  const listed = []
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<Client['cell_list']>> = await anyone.cell_list({
      path_prefix: 'import/',
      limit: 3,
      cursor,
    })
    listed.push(...page.cells)
    cursor = page.next_cursor
  } while (cursor !== null)
  assert.deepEqual(new Set(listed.map(({ path }) => path)), new Set(files.map(({ path }) => path)))
  for (const { path, data } of files) {
    const { cell } = await client.cell_get({ path })
    assert.equal(cell.data.text, data.text)
  }
  for (const { path, version, data } of listed) console.log(`  ${path}, version ${version}: ${data.label}`)
}

/** An update that names the version it is based on is refused if someone else was faster. */
async function changeOne(client: Client): Promise<void> {
  const { cell } = await client.cell_get({ path: 'import/README.md' })
  const change = { cell_id: cell.id, expected_version: cell.version }
  const changed = await client.cell_update({ ...change, data_patch: { read_at: new Date().toISOString() } })
  console.log(`Changed ${cell.path}: version ${cell.version} became ${changed.cell.version}.`)

  const late = await client.try.cell_update({ ...change, data_patch: { read_at: null } })
  assert(!late.ok && late.error.reason === 'cell_version_conflict')
  console.log(`The same change again is refused: ${late.error.reason}.`)
}

async function deleteOne(client: Client): Promise<void> {
  const { cell } = await client.cell_create({ data: { label: 'A draft' } })
  await client.cell_delete({ cell_id: cell.id })
  const gone = await client.try.cell_get({ id: cell.id })
  assert(!gone.ok && gone.error.reason === 'cell_not_found')
  console.log(`Deleted cell ${cell.id}.`)
}
