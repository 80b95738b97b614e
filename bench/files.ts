import { Session } from 'node:inspector/promises'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { testService } from '../src/testing/index.ts'

/**
 * `npm run bench:files`: the files that one warm request runs through, by V8 coverage. These are what a reader has
 * to open to follow it. Files of the client are left out, since clients run elsewhere.
 */
const source = fileURLToPath(new URL('../src/', import.meta.url))
const inspector = new Session()
inspector.connect()

/** The files of `src` with a function that ran during `work`. */
async function filesOf(work: () => Promise<unknown>): Promise<string[]> {
  await inspector.post('Profiler.enable')
  await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await work()
  const { result } = await inspector.post('Profiler.takePreciseCoverage')
  await inspector.post('Profiler.stopPreciseCoverage')
  return result
    .filter(({ url }) => url.startsWith('file://') && fileURLToPath(url).startsWith(source))
    .filter(({ functions }) =>
      functions.some(({ functionName, ranges }) => functionName !== '' && (ranges[0]?.count ?? 0) > 0),
    )
    .map(({ url }) => relative(source, fileURLToPath(url)))
    .filter((file) => !/^(client|testing)\//.test(file))
    .sort()
}

const test = await testService()
try {
  const grantor = await test.account({ roles: ['admin'] })
  const ada = await test.account()
  const { cell } = await ada.client.cell_create({ data: { label: 'Read' } })
  const cases = {
    account_verify: () => ada.client.account_verify(),
    cell_get: () => ada.client.cell_get({ id: cell.id }),
    cell_list: () => ada.client.cell_list({}),
    cell_create: () => ada.client.cell_create({ data: {} }),
  }
  for (const [name, call] of Object.entries(cases)) {
    for (let i = 0; i < 5; i++) await call()
    const files = await filesOf(call)
    console.log(`${name}: ${files.length}\n  ${files.join('\n  ')}`)
  }
  const people = []
  for (let i = 0; i < 4; i++) {
    const person = await test.account()
    const { offer } = await grantor.client.role_grant_offer_create({
      to_account_id: person.id,
      role: 'admin',
    })
    people.push({ person, offer })
  }
  let files: string[] = []
  for (const { person, offer } of people)
    files = await filesOf(() => person.client.role_grant_offer_accept({ offer_id: offer.offer_id }))
  console.log(`role_grant_offer_accept: ${files.length}\n  ${files.join('\n  ')}`)
} finally {
  await test.close()
}
