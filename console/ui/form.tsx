import type { ComponentChildren } from 'preact'
import type { explain } from '../copy/errors.ts'

/** What a form shows of the change that it sends. */
export type Change = { isBusy: boolean; wait: number; error: Parameters<typeof explain>[0] | null }

/** Shows the faults of its fields itself, in place of the browser. */
export const Form = (props: { onSubmit(): unknown; class?: string; children: ComponentChildren }) => (
  <form
    class={props.class}
    noValidate
    onSubmit={(event) => {
      event.preventDefault()
      const fields = [...event.currentTarget.elements] as HTMLInputElement[]
      const tooLong = fields.find(({ validity }) => validity?.customError)
      if (tooLong) tooLong.focus()
      else void props.onSubmit()
    }}
  >
    {props.children}
  </form>
)
