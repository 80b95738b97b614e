import { existsSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { signInGroups } from './mutants-sign-in.ts'
import { groups } from './mutants-table.ts'

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

it('each mutant changes a text that its file has once, and its tests are there', () => {
  const wrong = [...groups, ...signInGroups].flatMap(({ file, tests, mutants }) => [
    ...mutants.filter(([text]) => read(file).split(text).length !== 2).map(([text]) => `${file}: ${text}`),
    ...tests.filter((test) => !existsSync(new URL(`../${test}`, import.meta.url))),
  ])
  expect(wrong).toEqual([])
})
