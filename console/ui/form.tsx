import type { ComponentChildren } from 'preact'

/** Says itself what is wrong with its fields, not the browser. */
export const Form = (props: { onSubmit(): unknown; class?: string; children: ComponentChildren }) => (
  <form
    class={props.class}
    noValidate
    onSubmit={(event) => {
      event.preventDefault()
      void props.onSubmit()
    }}
  >
    {props.children}
  </form>
)
