import type { ComponentChildren } from 'preact'

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
