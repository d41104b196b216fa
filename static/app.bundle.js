var htmx=(()=>{const e={parse(t){if(!t)return{};if(t.startsWith("{"))return JSON.parse(t);let r=/(?:"([^"]+)"|'([^']+)'|([^\s,:]+))(?:\s*:\s*(?:"([^"]*)"|'([^']*)'|<((?:[^/]|\/(?!>))+)\/>|([^\s,]+)))?(?=\s|,|$)/g,i={};for(let s of t.matchAll(r)){let[,t,r,n,o,a,l,h]=s,c=t??r??n,u=(o??a??l??h??"true").trim();try{u=JSON.parse(u)}catch{}let d=n?.includes("."),f=d?c.split(".").reduceRight((e,t)=>({[t]:e}),u):{[c]:u};e.merge(f,i)}return i},split:e=>e.split(/,(?![^\[]*\])(?![^(]*\))(?![^<]*\/>)(?=(?:[^"']|"[^"]*"|'[^']*')*$)/),merge(t,r){"string"==typeof t&&(t=e.parse(t));for(let[i,s]of Object.entries(t)){if(["__proto__","constructor","prototype"].includes(i))continue;let t=s?.constructor===Object,n=r[i]?.constructor===Object;t&&n?e.merge(s,r[i]):r[i]=s}return r}};class t{#e=null;#t=[];admit(e,t,r){if(!this.#e)return this.#e={strategy:e,abort:r},"run";if("replace"===e||"abort"!==e&&"abort"===this.#e.strategy)return this.#t=[],this.#e.abort?.(),this.#e={strategy:e,abort:r},"run";if("queue all"===e)this.#t.push(t);else if("queue last"===e)this.#t=[t];else{if("abort"===e||"drop"===e||0!==this.#t.length)return"dropped";this.#t.push(t)}return"queued"}continue(e){this.#e?.abort===e&&(this.#e=null,this.#t.shift()?.())}abort(){this.#e?.abort?.()}}return new class{#r=e;#i=new Map;#s="";#n=new Set;_loc=window.location;#o;#a=Function;#l=Object.getPrototypeOf(async function(){}).constructor;#h={createHTML:e=>e,createScript:e=>e};#c;#u="a,form";#d=["get","post","put","patch","delete","query"];#f;#m;#p;#g;#x;constructor(){this.#b(),this.#y(),this.#c=this.#S("[hx-action],[hx-get],[hx-post],[hx-put],[hx-patch],[hx-delete],[hx-query]"),this.#f=(new XPathEvaluator).createExpression(`.//*[@*[${this.#v("hx-on").map(e=>`starts-with(name(), "${e}")`).join(" or ")}]]`),this.#o={HCON:e,attributeValue:this.#E.bind(this),parseTriggerSpecs:this.#w.bind(this),determineMethodAndAction:this.#A.bind(this),createRequestContext:this.#T.bind(this),collectFormData:this.#C.bind(this),getAttributeObject:this.#q.bind(this),insertContent:this.#N.bind(this),morph:this.#I.bind(this),isSoftMatch:this.#M.bind(this),initSecurity:(e,t,r)=>{e&&(this.#h=e),t&&(this.#a=t),r&&(this.#l=r)},onTrigger:this.#O.bind(this),htmxProp:this.#H.bind(this),triggerHtmxEvent:this.#L.bind(this),executeJavaScript:this.#k.bind(this)};let t=()=>this.initialize();"loading"===document.readyState?document.addEventListener("DOMContentLoaded",t):setTimeout(t)}#b(){this.version="4.0.1",this.config={logAll:!1,prefix:"data-hx-",transitions:!1,history:!0,mode:"same-origin",defaultSwap:"innerHTML",defaultFocusScroll:!1,indicatorClass:"htmx-indicator",requestClass:"htmx-request",includeIndicatorCSS:!0,defaultTimeout:6e4,extensions:"",morphIgnore:["data-htmx-powered"],morphSkip:"[hx-morph-skip]",morphSkipChildren:"[hx-morph-skip-children]",morphScanLimit:10,noSwap:[204,304],implicitInheritance:!1,defaultSettleDelay:1,allowEmptySwapAfterOOB:!1};let t=document.querySelector('meta[name="htmx-config"]');t&&e.merge(t.content,this.config),this.#s=this.config.extensions}#y(){if(!1!==this.config.includeIndicatorCSS){let e=this.config.indicatorClass,t=this.config.requestClass;try{this.indicatorStyleSheet=new CSSStyleSheet,this.indicatorStyleSheet.replaceSync(`.${e}{opacity:0;visibility: hidden} .${t} .${e}, .${t}.${e}{opacity:1;visibility: visible;transition: opacity 200ms ease-in}`),document.adoptedStyleSheets.push(this.indicatorStyleSheet)}catch{}}}registerExtension(e,t){return!(this.#s&&!this.#s.split(/,\s*/).includes(e))&&(!this.#n.has(e)&&(this.#n.add(e),t.init&&t.init(this.#o),void Object.entries(t).forEach(([e,t])=>{this.#i.get(e)?.push(t)||this.#i.set(e,[t])})))}#V(e){let t=this.config.prefix;return!e.closest||null!=e.closest("[hx-ignore]")||t&&null!=e.closest(`[${t}ignore]`)}#P(e,t){let r=this.config.prefix;return e.getAttribute(t)??(r?e.getAttribute(t.replace("hx-",r)):null)}#R(e,t){let r=this.config.prefix&&t.replace("hx-",this.config.prefix);return e.hasAttribute(t)?t:r&&e.hasAttribute(r)?r:null}#S(e){return this.#v(e).join(",")}#v(e){let t=[e];return this.config.prefix&&t.push(e.replaceAll("hx-",this.config.prefix)),t}#j(e,t){let r=[...e.querySelectorAll?.(t)??[]];return e.matches?.(t)&&r.unshift(e),r}#B(e){return"before"===e?"beforebegin":"after"===e?"afterend":"prepend"===e?"afterbegin":"append"===e?"beforeend":e}#z(e,t){let r=[];return this.#E(e,t,void 0,(e,t)=>{e?.split(/\s*[,:]\s*/).includes("this")&&r.push(t)}),r}#E(e,t,r,i,s=this.config.implicitInheritance){t=this.#F(t);let n=this.#F(":inherited"),o=this.#F(":append"),a=this.#P(e,t)??this.#P(e,t+n);if(null!=a)return i?i(a,e):a;let l=CSS.escape(s?t:t+n),h=CSS.escape(t+n+o),c=this.#S(`[${l}],[${h}]`),u=this.#R(e,t+o)??this.#R(e,t+n+o);if(u){let r=e.getAttribute(u),n=e.parentNode?.closest?.(c);if(i&&i(r,e),n){let e=this.#E(n,t,void 0,i,s);return e?(e+","+r).replace(/[{}]/g,""):r}return r}let d=e.parentNode?.closest?.(c);return d?(a=this.#E(d,t,void 0,i),!i&&a&&s&&this.#$(e,"htmx:after:implicitInheritance",{elt:e,name:t,parent:d}),a):r}#w(t){return e.split(t).flatMap(t=>{t=t.replace(/^\s*every\s+(\S+?)\s*(\[[^\]]*\])/,"every$2 $1");let[,r,i]=t.match(/^\s*(\S+\[[^\]]*\]|\S+)\s*(.*?)\s*$/)??[];if(!r)return[];if(/\[[^\]]*$/.test(r))throw"unterminated:"+r;return[{name:r,...e.parse(i)}]})}#A(e,t){let r=this.#E(e,"hx-method"),i=this.#E(e,"hx-action",void 0,void 0,!1);if(!i)for(let t of this.#d){let s=this.#E(e,"hx-"+t,void 0,void 0,!1);if(null!=s){i=s,r=t;break}}return this.#D(e)&&(i||=t.submitter?.getAttribute?.("formAction")||e.getAttribute(e.matches("a")?"href":"action")),r||=t.submitter?.getAttribute?.("formmethod")||e.getAttribute("method")||"GET",{action:i,method:r.toUpperCase()}}#H(e){return e._htmx||(e._htmx={listeners:[],triggerSpecs:[]},e.setAttribute("data-htmx-powered","true")),e._htmx}#W(e){return e._htmx_state||={}}#_(e){if(this.#U(e)&&this.#L(e,"htmx:before:init",{},!0)){let t=this.#H(e);t.initialized=!0,t.eventHandler=this.#Q(e),this.#J(e),this.#L(e,"htmx:after:init",{},!0)}}#Q(e){return async t=>{try{let r=this.#T(e,t);await this.#X(r)}catch(t){this.#L(e,"htmx:error",{error:t})}}}#T(t,r){let{action:i,method:s}=this.#A(t,r),[n,o]=(i||"").split("#"),a=new AbortController,l={sourceElement:t,sourceEvent:r,status:"created",select:this.#E(t,"hx-select"),selectOOB:this.#E(t,"hx-select-oob"),target:this.#E(t,"hx-target"),swap:this.#E(t,"hx-swap")??this.config.defaultSwap,push:this.#E(t,"hx-push-url"),replace:this.#E(t,"hx-replace-url"),transition:this.config.transitions,confirm:this.#E(t,"hx-confirm"),request:{validate:"true"===this.#E(t,"hx-validate",!t.matches("form")||t.noValidate||r.submitter?.formNoValidate?"false":"true",void 0,!1),action:n,anchor:o,method:s,headers:this.#G(t),abort:a.abort.bind(a),credentials:"same-origin",signal:a.signal,mode:this.config.mode}};t._htmx?.boosted&&e.merge(t._htmx.boosted,l),l.target=this.#K(t,l.target),l.target&&(l.request.headers["HX-Target"]=this.#Y(l.target));let h=this.#E(t,"hx-config");return h&&(e.merge(h,l.request),l.request.mode=this.config.mode),l}#Y(e){return`${e.tagName.toLowerCase()}${e.id?"#"+encodeURI(e.id):""}`}#G(e){let t={"HX-Request":"true","HX-Source":this.#Y(e),"HX-Current-URL":location.href,Accept:"text/html"};return this.#D(e)&&(t["HX-Boosted"]="true"),t}#Z(e,t){return this.#q(e,"hx-headers",e=>{for(let r in e)t.request.headers[r]=String(e[r])},{ctx:t})}#K(e,t){return t instanceof Element?t:null!=t?this.#ee(e,t,"hx-target"):this.#D(e)?document.body:e}#D(e){return e?._htmx?.boosted}async#X(e){let t=e.sourceElement,r=e.sourceEvent;if(!t.isConnected)return;if(this.#te(r))return;this.#re(r)&&r.preventDefault();let i=/GET|DELETE/.test(e.request.method),s=i?t.matches("form")?t:null:t.form||t.closest("form"),n=this.#C(t,s,r.submitter,e.request.validate,i);if(!n)return;let o=this.#q(t,"hx-vals",t=>{e.vals=t;for(let e in t)n.set(e,t[e])},{ctx:e});if(o&&await o,e.values)for(let t in e.values)n.delete(t),n.append(t,e.values[t]);let a=this.#Z(t,e);if(a&&await a,Object.assign(e.request,{form:s,submitter:r.submitter,body:n}),!this.#L(t,"htmx:config:request",{ctx:e}))return;if("DIALOG"===e.request.method)return;let l=this.#ie(e.request.action);if(null!=l){let t=Object.fromEntries(e.request.body);return void await this.#k(e.sourceElement,t,l,!1)}if(i){let t=new URL(e.request.action,document.baseURI);for(let r of e.request.body.keys())t.searchParams.delete(r);for(let[r,i]of e.request.body)t.searchParams.append(r,i);t.origin===location.origin?e.request.action=t.pathname+t.search:e.request.action=t.href,e.request.body=null}else"multipart/form-data"!==(this.#E(t,"hx-encoding")??s?.enctype)&&(e.request.body=new URLSearchParams(e.request.body));await this.#se(e)}async#se(e){let t=e.sourceElement,r=this.#ne(t),i=this.#oe(t);this.#ae(t);let s=()=>e.request?.abort?.();if("run"===i.admit(r,()=>this.#se(e),s)){e.status="issuing",e.indicators??=[],e.disabledElements??=[];try{if(e.confirm){if(!await new Promise(r=>{let i={ctx:e,issueRequest:()=>r(!0),dropRequest:()=>r(!1)};if(this.#L(t,"htmx:confirm",i)){let i=this.#ie(e.confirm);r(i?this.#k(t,{ctx:e},i,!0):window.confirm(e.confirm))}}))return}if(this.#le(e),this.#he(e),this.#ce(e),e.fetch||=window.fetch.bind(window),e.request.headers["HX-Request-Type"]=e.target===document.body||e.select?"full":"partial",!this.#L(t,"htmx:before:request",{ctx:e}))return;let r=await e.fetch(e.request.action,e.request);if(e.response={raw:r,status:r.status,headers:r.headers},this.#ue(e),!this.#L(t,"htmx:before:response",{ctx:e}))return;if(e.text=await r.text(),!this.#L(t,"htmx:after:request",{ctx:e}))return;if(e.response.status>=400&&this.#L(t,"htmx:response:error",{ctx:e}),this.#de(e))return void(e.keepIndicators=!0);if("issuing"===e.status){if(e.hx.retarget&&(e.target=e.hx.retarget),e.hx.reswap&&(e.swap=e.hx.reswap),e.hx.reselect&&(e.select=e.hx.reselect),!1===e.target?.isConnected)return;e.status="response received",this.#fe(e),await this.swap(e),e.status="swapped"}}catch(r){e.status="error: "+r,"AbortError"===r?.name&&"timeout"!==e.request.signal.reason||this.#L(t,"htmx:error",{ctx:e,error:r})}finally{await(e.extensionPromise?.catch(()=>{})),clearTimeout(e.requestTimeout),e.hx?.trigger&&this.#me(e.hx.trigger,e.sourceElement),this.#L(t,"htmx:finally:request",{ctx:e}),e.keepIndicators||(this.#pe(e.indicators),this.#ge(e.disabledElements)),i.continue(s)}}}#ue(e){e.hx={};for(let[t,r]of e.response.raw.headers)t.toLowerCase().startsWith("hx-")&&(e.hx[t.slice(3).toLowerCase().replace(/-/g,"")]=r)}#de(t){if("true"===t.hx.refresh)return this._loc.reload(),!0;if(t.hx.redirect)return this._loc.href=t.hx.redirect,!0;if(t.hx.location){let r=t.hx.location,i={},s=e.parse(r);return"{"!==r[0]&&null==s.path||(i=s,r=i.path,delete i.path),null==i.push&&null==i.replace&&(i.push="true"),i.indicators=t.indicators,i.disabledElements=t.disabledElements,this.ajax("GET",r,i),!0}}#le(e){let t=null!=e.request.timeout?this.parseInterval(e.request.timeout):this.config.defaultTimeout;t&&(e.requestTimeout=setTimeout(()=>e.request?.abort?.("timeout"),t))}#ne(e){let t=this.#E(e,"hx-sync");if(!t)return"queue first";let r=t.split(":").pop().trim();return/^(drop|abort|replace|queue)/.test(r)?r:"queue first"}#oe(e){let r=this.#E(e,"hx-sync"),i=e;if(r){let t=r.includes(":")?r.slice(0,r.lastIndexOf(":")).trim():/^(drop|abort|replace|queue)/.test(r)?null:r;t&&(i=this.#ee(e,t,"hx-sync")||e)}return this.#W(i).rq||=new t}#te(e){return"click"===e.type&&(e.ctrlKey||e.metaKey||e.shiftKey)&&!!e.currentTarget?.closest?.("a[href]")}#re(e){let t=e.currentTarget;if("submit"===e.type&&"FORM"===t?.tagName)return!0;if(!("click"===e.type&&0===e.button))return!1;let r=t?.closest?.('button, input[type="submit"], input[type="image"]'),i=r?.form||r?.closest("form");if(r&&!r.disabled&&i&&("submit"===r.type||"image"===r.type||!r.type&&"BUTTON"===r.tagName))return!0;let s=t?.closest?.("a");if(!s||!s.href)return!1;let n=s.getAttribute("href");return!(n&&n.startsWith("#")&&n.length>1)}#J(e,t=e._htmx.eventHandler){let r=this.#E(e,"hx-trigger",void 0,void 0,!1)||(e.matches("form")?"submit":e.matches("input:not([type=button]):not([type=submit]),select,textarea")?"change":"click");this.#O(e,r,t)}#O(e,t,r){let i=this.#w(t);this.#H(e).triggerSpecs.push(...i);for(let t of i){t.listeners=[];let[i,s]=this.#xe(t.name),n=[e];"outside"===t.from?n=[document]:t.from&&"self"!==t.from&&(n=this.#be(e,t.from));let o=i=>{if((t.halt||t.prevent)&&i.preventDefault(),(t.halt||t.stop||t.consume)&&i.stopPropagation(),t.changed){let t=this.#W(e).changedValues??=new WeakMap,r=i.target;if(!["checkbox","radio"].includes(r?.type)){let e=r?.value;if(t.has(r)&&t.get(r)===e)return;t.set(r,e)}}if(t.once)for(let e of t.listeners)e.fromElt.removeEventListener(e.eventName,e.handler,e);r(i)},a=o;if(t.delay?a=e=>{clearTimeout(t.timeout),t.timeout=setTimeout(()=>o(e),this.parseInterval(t.delay))}:t.throttle&&(a=e=>{t.throttled?t.throttledEvent=e:(t.throttled=!0,o(e),t.throttleTimeout=setTimeout(()=>{if(t.throttled=!1,t.throttledEvent){let e=t.throttledEvent;t.throttledEvent=null,a(e)}},this.parseInterval(t.throttle)))}),t.handler=r=>{if(this.#re(r)&&r.preventDefault(),("self"!==t.from||r.target===e)&&("outside"!==t.from||!e.contains(r.target))&&(!t.target||r.target?.matches?.(t.target))){if(s){let t={};for(let e in r)/^[a-z]+$/i.test(e)&&(t[e]=r[e]);if(!this.#k(e,t,s,!0,!1))return}if("every"!==i)for(let t of this.#H(e).triggerSpecs)clearTimeout(t.timeout),t.throttledEvent=null;a(r)}},"intersect"===i||"revealed"===i){let r={rootMargin:t.rootMargin};t.root&&(r.root=this.#ee(e,t.root)),t.threshold&&(r.threshold=parseFloat(t.threshold));let s="revealed"===i;t.observer=new IntersectionObserver(e=>{for(let r=0;r<e.length;r++)if(e[r].isIntersecting){this.trigger(e[r].target,"intersect",{},!1),s&&t.observer.disconnect();break}},r),i="intersect";for(let e of n)t.observer.observe(e)}if("every"===i){let r=Object.keys(t).find(e=>"name"!==e);t.interval=setInterval(()=>{e.isConnected?this.#L(e,"every",{},!1):clearInterval(t.interval)},this.parseInterval(r))}if("load"!==i)for(let r of n){let s={fromElt:r,eventName:i,handler:t.handler,capture:!!t.capture,passive:!!t.passive};e._htmx.listeners.push(s),t.listeners.push(s),r.addEventListener(i,t.handler,s)}else t.handler(new CustomEvent("load"))}}#xe(e){let t=e.match(/^([^\[]*)\[([^\]]*)]/);return t?[t[1],t[2]]:[e,null]}#me(t,r){if("{"===t[0]){let i=e.parse(t);for(let e in i){let t=i[e],s=r;t?.target&&(s=this.find(t.target)),this.trigger(s,e,"object"==typeof t?t:{value:t})}}else t.split(",").forEach(e=>this.trigger(r,e.trim(),{}))}#ye(e){let t={},r=Object.getPrototypeOf(this);for(let i of Object.getOwnPropertyNames(r))"constructor"!==i&&"function"==typeof this[i]&&(["find","findAll"].includes(i)?t[i]=(t,r)=>void 0===r?this[i](e,t):this[i](t,r):t[i]=this[i].bind(this));return t}#k(e,t,r,i=!0,s=!0,n=!1){let o={};Object.assign(o,this.#ye(e));let a={},l={scope:a,code:r};this.#$(e,"htmx:scope",l),r=l.code,Object.assign(o,a),Object.assign(o,t);let h=Object.keys(o),c=Object.values(o),u=new(s?this.#l:this.#a)(...h,i?`return (${r})`:r);return n?()=>u.call(e,...c):u.call(e,...c)}process(e,t){if(!e?.isConnected)return;if(!(e instanceof Element)){for(let r of e.children||[])this.process(r,t);return}if(t&&this.#Se(e,!0),this.#V(e))return;if(!this.#L(e,"htmx:before:process"))return;let r=[e],i=this.#f.evaluate(e),s=null;for(;s=i.iterateNext();)r.push(s);for(let e of r)!this.#V(e)&&this.#L(e,"htmx:before:on:init",{},!0)&&this.#ve(e);for(let t of this.#j(e,this.#c))this.#_(t);for(let t of this.#j(e,this.#u))this.#Ee(t);this.#L(e,"htmx:after:process")}#Ee(e){let t=this.#E(e,"hx-boost");if(t&&"false"!==t&&this.#we(e)&&this.#L(e,"htmx:before:init",{},!0)){let r=this.#H(e);r.initialized=!0,r.eventHandler=this.#Q(e),r.boosted=t,this.#J(e),this.#L(e,"htmx:after:init",{},!0)}}#we(e){if(this.#U(e))if("A"===e.tagName){if(""===e.target||"_self"===e.target)return!e.hasAttribute("download")&&!e.getAttribute("href")?.startsWith?.("#")&&this.#Ae(e.href)}else if("FORM"===e.tagName)return"dialog"!==e.method&&this.#Ae(e.action)}#Ae(e){try{return new URL(e,window.location.href).origin===window.location.origin}catch(e){return!1}}#U(e){return!e._htmx?.initialized&&!this.#V(e)}#Se(e,t){let r=[e,...e.querySelectorAll?.("[data-htmx-powered]")??[]];for(let e of r)if(e._htmx){this.#L(e,"htmx:before:cleanup");for(let t of e._htmx.triggerSpecs||[])t.interval&&clearInterval(t.interval),t.timeout&&clearTimeout(t.timeout),t.throttleTimeout&&clearTimeout(t.throttleTimeout),t.observer?.disconnect();for(let t of e._htmx.listeners||[])t.fromElt.removeEventListener(t.eventName,t.handler,t);e.removeAttribute("data-htmx-powered"),this.#L(e,"htmx:after:cleanup"),t&&delete e._htmx}}#Te(e){let t=document.createElement("div");t.hidden=!0,document.body.insertAdjacentElement("afterend",t);let r=e.querySelectorAll?.(this.#S("[hx-preserve]"))||[];for(let e of r){let r=document.getElementById(e.id);r&&this.#Ce(t,r,null)}return t}#qe(e){for(let t of[...e.children]){let e=document.getElementById(t.id);e&&(this.#Ce(e.parentNode,t,e),this.#Se(e),e.remove())}e.remove()}#Ne(e){let t=this.#h.createHTML(e);return Document.parseHTMLUnsafe?.(t,{})||(new DOMParser).parseFromString(t,"text/html")}#Ie(e){let t=e.replace(/<hx-([a-z]+)(\s+|>)/gi,'<template hx type="$1"$2').replace(/<\/hx-[a-z]+>/gi,"</template>"),r="";t=t.replace(/<head(\s[^>]*)?>[\s\S]*?<\/head>/i,e=>(r=this.#Ne(e).title,""));let i,s,n=t.match(/<([a-z][^\/>\x20\t\r\n\f]*)/i)?.[1]?.toLowerCase();if("html"===n||"body"===n?(i=this.#Ne(t),s=document.createDocumentFragment(),s.append(i.body)):(i=this.#Ne(`<template>${t}</template>`),s=i.querySelector("template").content),!r){let e=s.querySelector("title:not(svg title)");e&&(r=e.textContent,e.remove())}return this.#Me(s),{fragment:s,title:r}}#Oe(e,t,r,i){let s=t.id?"#"+CSS.escape(t.id):null,[,n,o]=r.match(/^(\S+):(.+)/)??[];n&&([r,s]=[n,o||s]),"true"!==r&&r||(r="outerHTML");let a=this.#He(r);if(s=a.target||s,a.strip??=!a.style.startsWith("outer"),!s)return;let l=this.#be(i,s);for(let r of l){let s=document.createDocumentFragment();s.append(t.cloneNode(!0)),e.push({type:"oob",fragment:s,target:r,swapSpec:a,sourceElement:i})}t.remove()}#Le(e,t,r){let i=[];if(r)for(let s of r.split(",")){let[r,n="true"]=s.split(/:(.*)/);for(let s of e.querySelectorAll(r))this.#Oe(i,s,n,t)}for(let r of e.querySelectorAll(this.#S("[hx-swap-oob]"))){let e=this.#R(r,"hx-swap-oob"),s=r.getAttribute(e);r.removeAttribute(e),this.#Oe(i,r,s,t)}return i}#ke(e,t,r){t?t.before(...r.childNodes):e.append(...r.childNodes)}#He(t){t=t.trim();let r=this.config.defaultSwap;if(t&&!/^\S*:/.test(t)){let e=t.match(/^(\S+)\s*(.*)$/);r=e[1],t=e[2]}return{style:this.#B(r),...e.parse(t)}}#Ve(e,t){let r=[];for(let i of e.querySelectorAll("template[hx]")){let e=i.getAttribute("type");if("partial"===e){let e=this.#P(i,"hx-target")||(i.id?"#"+CSS.escape(i.id):null);if(e){this.#Me(i.content);let s=this.#He(this.#P(i,"hx-swap")||this.config.defaultSwap);s.ignoreTitle&&(t.title=null);let n=this.#be(t.sourceElement,e);for(let e of n.length?n:[null])r.push({type:"partial",fragment:i.content.cloneNode(!0),target:e,swapSpec:s,sourceElement:t.sourceElement})}}else this.#$(i,"htmx:process:"+e,{ctx:t,tasks:r});i.remove()}return r}#Pe(e,t,r,i){try{null!=r&&e.setSelectionRange&&e.setSelectionRange(r,i),e.focus(t)}catch(e){}}#Re(e){let t=this.#j(e,"[autofocus]")[0];t&&this.#Pe(t)}#je(e){return e===window||e===document?document.scrollingElement:e}#Be(e,t){if(e.scroll){let r=e.scrollTarget?this.#je(this.#ze(t,e.scrollTarget)):t;r&&("top"===e.scroll?r.scrollTop=0:"bottom"===e.scroll&&(r.scrollTop=r.scrollHeight))}if("top"===e.show||"bottom"===e.show){let r=e.showTarget?this.#je(this.#ze(t,e.showTarget)):t;r?.scrollIntoView?.("top"===e.show)}}#Fe(e){e.request?.anchor&&document.getElementById(e.request.anchor)?.scrollIntoView({block:"start",behavior:"auto"})}#Me(e){let t=this.#j(e,"script");for(let e of t){let t=document.createElement("script");for(let r of e.attributes)t.setAttribute(r.name,r.value);this.config.inlineScriptNonce&&(t.nonce=this.config.inlineScriptNonce),t.textContent=this.#h.createScript(e.textContent),e.replaceWith(t)}}initialize(){this.config.history&&!this.#g&&(this.#g=!0,window.navigation&&!/firefox/i.test(navigator.userAgent)?navigation.addEventListener("navigate",e=>{"traverse"===e.navigationType&&e.canIntercept&&!e.hashChange&&e.intercept({handler:()=>this.#$e()})}):window.addEventListener("popstate",e=>this.#$e(e.state))),this.process(document.body)}async swap(e){try{let{fragment:t,title:r}=this.#Ie(e.text);e.title=r;let i=[],s=this.#Le(t,e.sourceElement,e.selectOOB),n=this.#Ve(t,e);i.push(...s,...n);let o=n.length||s.length&&!this.config.allowEmptySwapAfterOOB,a=this.#De(e,t,o);if(a&&i.unshift(a),!this.#L(e.sourceElement,"htmx:before:swap",{ctx:e,tasks:i}))return;this.#We(e);let l=[],h=[];for(let t of i)t.swapSpec?.transition??a?.transition??e.transition?h.push(t):l.push(this.#N(t));if(h.length>0){let t=async()=>{for(let e of h)await this.#N(e,!1)};l.push(this.#_e(t,e))}await Promise.all(l),!e.sourceElement?.isConnected&&a?.target?.isConnected&&(e.sourceElement=a.target),this.#L(e.sourceElement,"htmx:after:swap",{ctx:e}),e.title&&"none"!==e.swap&&(document.title=e.title),this.#Fe(e)}finally{this.#L(e.sourceElement,"htmx:finally:swap",{ctx:e})}}#De(e,t,r){let i=this.#He(e.swap||this.config.defaultSwap);if(i.ignoreTitle&&(e.title=null),"delete"===i.style||(t.querySelector("body")||t).childElementCount>0||t.textContent.trim()||(i.swapEmpty??!r)){if(e.select){let r=t.querySelectorAll(e.select);(t=document.createDocumentFragment()).append(...r)}return this.#D(e.sourceElement)&&(i.show||="top"),{type:"main",fragment:t,target:this.#K(e.sourceElement||document.body,i.target||e.target),swapSpec:i,sourceElement:e.sourceElement,transition:e.transition&&!1!==i.transition}}}async#N(e,t=!0){let{target:r,swapSpec:i,fragment:s}=e;if("string"==typeof r&&(r=document.querySelector(r)),!r)return;"string"==typeof i&&(i=this.#He(i));let n,o=i.style;if("none"===o)return;if("BODY"===s.firstElementChild?.tagName){const e=r===document.body&&o.startsWith("outer");e&&"outerHTML"===o&&(o="outerSync"),i.strip??=!e}if(i.strip&&s.firstElementChild&&(s=document.createDocumentFragment(),s.append(...(e.fragment.firstElementChild.content||e.fragment.firstElementChild).childNodes)),this.#Ue(r,"htmx-swapping"),t&&e.swapSpec?.swap&&await this.timeout(e.swapSpec?.swap),"delete"===o)return void(r.parentNode&&(this.#Se(r),r.parentNode.removeChild(r)));let a=[],l=i.settle??this.config.defaultSettleDelay,h=r.parentNode;if("innerHTML"===o||"outerHTML"===o&&h){let e=document.activeElement;if(e?.id){let t,r;try{t=e.selectionStart,r=e.selectionEnd}catch(e){}n={elt:e,start:t,end:r}}a=t&&l?this.#Qe(s,r):[]}let c=this.#Te(s),u=[...s.childNodes];try{if("innerHTML"===o){for(const e of r.children)this.#Se(e);r.replaceChildren(...s.childNodes)}else if("textContent"===o){for(const e of r.querySelectorAll("[data-htmx-powered]"))this.#Se(e);r.textContent=s.textContent}else if("outerHTML"===o)h&&(this.#ke(h,r,s),this.#Se(r),h.removeChild(r),r=u.find(e=>1===e.nodeType)||h);else if("outerSync"===o){this.#Je(r,s.firstElementChild);for(const e of r.children)this.#Se(e);r.replaceChildren(...s.firstElementChild.childNodes),u=[r]}else if("innerMorph"===o)this.#I(r,s,!0),u=[...r.childNodes];else if("outerMorph"===o)this.#I(r,s,!1),u.push(r);else if("beforebegin"===o)h&&this.#ke(h,r,s);else if("afterbegin"===o)this.#ke(r,r.firstChild,s);else if("beforeend"===o)this.#ke(r,null,s);else if("afterend"===o)h&&this.#ke(h,r.nextSibling,s);else{let e=this.#i.get("handle_swap")||[],t=!1;for(const n of e){let e=n(o,r,s,i);if(e){t=!0,Array.isArray(e)&&(u=e);break}}if(!t)throw new Error(`Unknown swap style: ${o}`)}}finally{this.#Xe(r,"htmx-swapping")}if(e.target=r,this.#qe(c),n&&!n.elt.matches(":focus")){let e=document.getElementById(n.elt.id);if(e){let t={preventScroll:void 0!==i.focusScroll?!i.focusScroll:!this.config.defaultFocusScroll};this.#Pe(e,t,n.start,n.end)}}this.#L(r,"htmx:before:settle",{task:e,newContent:u,settleTasks:a});for(const e of u)this.#Ue(e,"htmx-added");if(t&&a.length>0){this.#Ue(r,"htmx-settling"),await this.timeout(l);for(let e of a)e();this.#Xe(r,"htmx-settling")}this.#L(r,"htmx:after:settle",{task:e,newContent:u,settleTasks:a});for(const e of u)this.#Xe(e,"htmx-added"),this.process(e),this.#Re(e);this.#Be(i,r)}#L(e,t,r={},i=!0){if(r.error){let i=`htmx: ${t}: ${r.error.message??r.error}`;r.error instanceof Error?console.error(i,r.error,{elt:e,detail:r}):console.error(i,{elt:e,detail:r})}else r.warn?console.warn(`htmx: ${t}: ${r.warn}`,{elt:e,detail:r}):this.config.logAll&&console.log(`htmx: ${t}`,{elt:e,detail:r});return e=this.#Ge(e),this.#$(e,t,r),this.trigger(e,this.#F(t),r,i)}#$(e,t,r={}){let i=this.#i.get(t.replace(/:/g,"_"));if(i){r.cancelled=!1;for(const t of i)if(!1===t(e,r)||r.cancelled)return r.cancelled=!0,!1}return!0}timeout(e){if((e=this.parseInterval(e))>0)return new Promise(t=>setTimeout(t,e))}onLoad(e){this.on(this.#F("htmx:after:process"),t=>{e(t.target)})}on(e,t,r){let i,s=document;return void 0===r?(i=e,r=t):(s=this.#Ge(e),i=t),s.addEventListener(i,r),r}find(e,t){return this.#ze(e,t)}findAll(e,t){return this.#be(e,t)}parseInterval(e){if("number"==typeof e)return e;let[,t,r]=e?.match(/^([\d.]+)(ms|s|m)?$/)||[],i=parseFloat(t)*({ms:1,s:1e3,m:6e4}[r]||1);return isNaN(i)?void 0:i}trigger(e,t,r={},i=!0){e=this.#Ge(e);let s=new CustomEvent(t,{detail:r,cancelable:!0,bubbles:i,composed:!0}),n=e?.isConnected?e:document;return!r?.cancelled&&n.dispatchEvent(s)}ajax(e,t,r){(!r||r instanceof Element||"string"==typeof r)&&(r={target:r});let i="string"==typeof r.source?document.querySelector(r.source):r.source;if("string"==typeof r.source&&!i)return Promise.reject(new Error("Source not found"));i||=document.body;let s=this.#T(i,r.event||{});return Object.assign(s,r),r.target&&(s.target=this.#K(document.body,r.target),!s.target)?Promise.reject(new Error("Target not found")):(Object.assign(s.request,{action:t,method:e.toUpperCase()}),r.headers&&Object.assign(s.request.headers,r.headers),this.#X(s))}#Ke(e){this.config.history&&(history.pushState({htmx:!0},"",e),this.#L(document,"htmx:after:history:push",{path:e}))}#Ye(e){this.config.history&&(history.replaceState({htmx:!0},"",e),this.#L(document,"htmx:after:history:replace",{path:e}))}async#$e(e,t){if(await this.timeout(1),e??=history.state,!e?.htmx)return;this.#p?.abort(),t=t||location.pathname+location.search;let r=document.querySelector(this.#S("[hx-history-elt]"))||document.body;if(this.#L(document,"htmx:before:history:restore",{path:t,cacheMiss:!0})){if("reload"!==this.config.history)return this.#p=new AbortController,this.ajax("GET",t,{target:r,swap:"outerSync",select:r!==document.body?this.#S("[hx-history-elt]"):void 0,request:{headers:{"HX-History-Restore-Request":"true"},signal:this.#p.signal}});this._loc.reload()}}#Ze(e){let{sourceElement:t,push:r,replace:i,hx:s,response:n}=e;if((s?.pushurl||s?.replaceurl)&&(r=s.pushurl,i=s.replaceurl),null==r&&null==i&&this.#D(t)&&(r="true"),"false"!==r&&!1!==r||(r=null),"false"!==i&&!1!==i||(i=null),!r&&!i)return null;let o=r||i;if("true"===o){let t=n?.raw?.url||e.request.action,r=new URL(t,location.href);o=r.pathname+r.search+(e.request.anchor?"#"+e.request.anchor:"")}return{type:r?"push":"replace",path:o}}#We(e){if(!this.config.history)return;history.state?.htmx||history.replaceState({htmx:!0},"",location.href);let t=this.#Ze(e);if(!t)return;let r={history:t,sourceElement:e.sourceElement,response:e.response};this.#L(document,"htmx:before:history:update",r)&&("push"===t.type?this.#Ke(t.path):this.#Ye(t.path),this.#L(document,"htmx:after:history:update",r))}#ve(e){if(e._htmx?.onInitialized)return;let t=this.#v("hx-on"),r=this.config.metaCharacter||":",i=t=>async r=>{try{await this.#k(e,{event:r},`with(event?.detail||{}){${t}}`,!1)}catch(t){"symbol"!=typeof t&&this.#L(e,"htmx:error",{error:t})}};for(let s of e.getAttributeNames()){let n=t.find(e=>s.startsWith(e));if(!n)continue;this.#H(e).onInitialized=!0;let o=s.substring(n.length),a=e.getAttribute(s);if(!o){for(let t of a.split(/;(?=[^;]*->)/)){let r=t.indexOf("->");-1!==r&&this.#O(e,t.substring(0,r).trim(),i(t.substring(r+2).trim()))}continue}if(o[0]!==r)continue;let l=o.substring(1);l.startsWith(r)&&(l="htmx"+r+l.substring(1)),this.#O(e,l,i(a))}}#he(e){let t,r=e.sourceElement,i=this.#E(r,"hx-indicator");if(i)t=this.#be(r,i,"hx-indicator");else{if(r===document.body)return;t=[r]}for(const r of t){e.indicators.push(r);let t=this.#W(r);t.rc=(t.rc||0)+1,this.#Ue(r,this.config.requestClass)}}#pe(e){for(let t of e){let e=this.#W(t);e.rc&&--e.rc<=0&&(this.#Xe(t,this.config.requestClass),delete e.rc)}}#ce(e){let t=e.sourceElement,r=this.#E(t,"hx-disable");if(r)for(let i of this.#be(t,r,"hx-disable")){e.disabledElements.push(i);let t=this.#W(i);t.dc=(t.dc||0)+1,i.disabled=!0}}#ge(e){for(const t of e){let e=this.#W(t);e.dc&&--e.dc<=0&&(t.disabled=!1,delete e.dc)}}#C(e,t,r,i,s){if(i&&t&&!t.reportValidity())return;r??=t&&"submit"===e.type?e:null;let n=t?new FormData(t):new FormData,o=t?new Set(t.elements):new Set;if(!t){if(i&&e.reportValidity&&!e.reportValidity())return;this.#et(e,o,n,s)}r?.name&&(n.append(r.name,r.value),o.add(r));let a=this.#E(e,"hx-include");if(a)for(let t of this.#be(e,a)){if(i&&t.reportValidity&&!t.reportValidity())return;this.#et(t,o,n)}return n}#et(e,t,r,i){let s=e.tagName,n=[];"BUTTON"===s||s.includes("-")?n=[e]:(["INPUT","SELECT","TEXTAREA","FIELDSET"].includes(s)||!i&&e!==document.body)&&(n=this.#j(e,"[name]:not(button)"));for(let e of n){let i=e.name||e.getAttribute?.("name");if(!i||e.matches(":disabled")||t.has(e))continue;t.add(e);let s=e.type;if("checkbox"===s||"radio"===s||"INPUT"!==e.tagName&&"checked"in e)e.checked&&r.append(i,e.value);else if("file"===s)for(let t of e.files)r.append(i,t);else if("select-multiple"===s)for(let t of e.selectedOptions)r.append(i,t.value);else if(Array.isArray(e.value))for(let t of e.value)r.append(i,t);else r.append(i,e.value)}}#q(t,r,i,s={}){let n=this.#E(t,r);if(!n)return null;let o=this.#ie(n);if(o)return 0!==o.indexOf("{")&&(o="{"+o+"}"),this.#k(t,s,o,!0).then(e=>{i(e)});i(e.parse(n))}#tt(e){let t=e.trim();return t.startsWith("<")&&t.endsWith("/>")?t.slice(1,-2):t}#be(t,r,i,s){let n=r??t,o=r?this.#Ge(t)||document.body:document;if(n.startsWith("global "))return this.#be(o,n.slice(7),i,!0);let a=n?e.split(n):[],l=[],h=[];for(const e of a){let t,r=this.#tt(e);if(r.startsWith("closest "))t=o.closest(r.slice(8));else if(r.startsWith("find "))t=o.querySelector(r.slice(5));else if(r.startsWith("findAll "))l.push(...o.querySelectorAll(r.slice(8)));else if("next"===r||"nextElementSibling"===r)t=o.nextElementSibling;else if(r.startsWith("next "))t=this.#rt(o,r.slice(5),!!s);else if("previous"===r||"previousElementSibling"===r)t=o.previousElementSibling;else if(r.startsWith("previous "))t=this.#it(o,r.slice(9),!!s);else if("document"===r)t=document;else if("window"===r)t=window;else if("body"===r)t=document.body;else if("host"===r)t=o.getRootNode().host;else if("this"===r){if(i){l.push(...this.#z(o,i));continue}t=o}else h.push(r);t&&l.push(t)}if(h.length>0){let e=h.join(","),t=this.#st(o,!!s);l.push(...t.querySelectorAll(e))}return[...new Set(l)]}#rt(e,t,r){return this.#nt(this.#st(e,r).querySelectorAll(t),e,Node.DOCUMENT_POSITION_PRECEDING)}#it(e,t,r){let i=[...this.#st(e,r).querySelectorAll(t)].reverse();return this.#nt(i,e,Node.DOCUMENT_POSITION_FOLLOWING)}#nt(e,t,r){for(const i of e)if(i.compareDocumentPosition(t)===r)return i}#st(e,t){return e.isConnected&&e.getRootNode?e.getRootNode?.({composed:t}):document}#ee(e,t,r){let i=this.#be(e,t,r)[0];return i||console.warn(`htmx: '${t}' on ${r} did not match any element`,{elt:e,selector:t,attr:r}),i}#ze(e,t,r){return this.#be(e,t,r)[0]}#ie(e){if(null!=e){if(e.startsWith("js:"))return e.substring(3);if(e.startsWith("javascript:"))return e.substring(11)}}#ae(e){let t=this.#H(e);if(t.abortInitialized)return;t.abortInitialized=!0;let r=()=>{this.#oe(e).abort()};e.addEventListener("htmx:abort",r),t.listeners.push({fromElt:e,eventName:"htmx:abort",handler:r})}#I(e,t,r){let{persistentIds:i,idMap:s}=this.#ot(e,t),n=document.createElement("div");n.hidden=!0,document.body.after(n);let o={target:e,idMap:s,persistentIds:i,pantry:n,futureMatches:new WeakSet};r?this.#at(o,e,t):this.#at(o,e.parentNode,t,e,e.nextSibling),this.#Se(n),n.remove()}#at(e,t,r,i=null,s=null){t instanceof HTMLTemplateElement&&r instanceof HTMLTemplateElement&&(t=t.content,r=r.content),i||=t.firstChild;let n=r.firstChild;for(;n;){let r;if(i&&i!=s&&(r=this.#lt(e,n,i,s),r&&r!==i)){let o=i;for(;o&&o!==r;){let r=o;o=o.nextSibling,r instanceof Element&&(e.idMap.has(r)||this.#ht(e,r,n))?this.#Ce(t,r,s):this.#ct(e,r)}}if(!r&&n instanceof Element&&e.persistentIds.has(n.id)){let s=CSS.escape(n.id);r=e.target.id===n.id&&e.target||e.target.querySelector(`[id="${s}"]`)||e.pantry.querySelector(`[id="${s}"]`);let o=r;for(;o=o.parentNode;){let t=e.idMap.get(o);t&&(t.delete(r.id),t.size||e.idMap.delete(o))}this.#Ce(t,r,i)}if(r){this.#ut(r,n,e),i=r.nextSibling,n=n.nextSibling;continue}let o=n.nextSibling;if(e.idMap.has(n)){let r=document.createElement(n.tagName);t.insertBefore(r,i),this.#ut(r,n,e),this.process(r),i=r.nextSibling}else t.insertBefore(n,i),i=n.nextSibling;n=o}for(;i&&i!=s;){let t=i;i=i.nextSibling,this.#ct(e,t)}}#ht(e,t,r){if(e.futureMatches.has(t))return!0;for(let i=r.nextSibling,s=0;i&&s<this.config.morphScanLimit;i=i.nextSibling,s++)if(i instanceof Element&&t.isEqualNode(i))return e.futureMatches.add(t),!0;return!1}#lt(e,t,r,i){if(3===t.nodeType)return 3===r?.nodeType?r:null;if(!(t instanceof Element))return null;let s=null,n=0,o=this.config.morphScanLimit,a=e.idMap.get(t),l=a?.size||0;if(t.id&&!a)return null;let h=r;for(;h&&h!=i;){let r=e.idMap.get(h);if(this.#o.isSoftMatch(h,t)){if(r&&a&&[...r].some(e=>a.has(e)))return h;if(!r){if(o>0&&h.isEqualNode(t))return h;s||(s=h)}}if(n+=r?.size||0,n>l)break;if(null!=document.activeElement?.selectionStart&&h.contains(document.activeElement))break;if(--o<1&&0===l)break;h=h.nextSibling}return s&&this.#ht(e,s,t)?null:s}#M(e,t){return e instanceof Element&&e.tagName===t.tagName&&(!("SCRIPT"===e.tagName&&!e.isEqualNode(t))&&(!e.id||e.id===t.id))}#ct(e,t){e.idMap.has(t)?this.#Ce(e.pantry,t,null):(this.#Se(t),t.remove())}#Ce(e,t,r){if(e.moveBefore)try{return void e.moveBefore(t,r)}catch(e){}e.insertBefore(t,r)}#ut(e,t,r){if(3===e.nodeType)return void(e.nodeValue!==t.nodeValue&&(e.nodeValue=t.nodeValue));if(this.config.morphSkip&&e.matches?.(this.config.morphSkip))return;if(!this.#$(e,"htmx:before:morph:node",{oldNode:e,newNode:t}))return;this.#Je(e,t),e instanceof HTMLTextAreaElement&&document.activeElement!==e&&e.defaultValue!=t.defaultValue&&(e.value=t.value),this.config.morphSkipChildren&&e.matches?.(this.config.morphSkipChildren)||e.isEqualNode(t)&&"TEMPLATE"!==t.tagName&&!t.querySelector?.("template")||this.#at(r,e,t)}#Je(e,t){let r=this.config.morphIgnore||[],i=!1,s=e=>this.#v("hx-").some(t=>e.startsWith(t));for(const n of t.attributes)if(!r.some(e=>n.name.startsWith(e))&&e.getAttribute(n.name)!==n.value){if(s(n.name)&&(i=!0),!this.#$(e,"htmx:before:morph:attr",{attrName:n.name,newValue:n.value}))continue;e.setAttribute(n.name,n.value),"value"===n.name&&e instanceof HTMLInputElement&&"file"!==e.type&&document.activeElement!==e&&(e.value=n.value)}for(let n=e.attributes.length-1;n>=0;n--){let o=e.attributes[n];if(o&&!t.hasAttribute(o.name)&&!r.some(e=>o.name.startsWith(e))){if(s(o.name)&&(i=!0),!this.#$(e,"htmx:before:morph:attr",{attrName:o.name,newValue:null}))continue;e.removeAttribute(o.name)}}i&&this.#Se(e,!0)}#dt(e,t,r,i){for(const s of i)if(t.has(s.id)){let t=s;for(;t&&t!==r;){let r=e.get(t);null==r&&(r=new Set,e.set(t,r)),r.add(s.id),t=t.parentElement}}}#ot(e,t){let r=this.#j(e,"[id]"),i=t.querySelectorAll("[id]"),s=this.#ft(r,i),n=new Map;return this.#dt(n,s,e.parentElement,r),this.#dt(n,s,t,i),{persistentIds:s,idMap:n}}#ft(e,t){let r=new Set,i=new Map;for(const{id:t,tagName:s}of e)i.has(t)?r.add(t):t&&i.set(t,s);let s=new Set;for(const{id:e,tagName:n}of t)s.has(e)?r.add(e):i.get(e)===n&&s.add(e);for(const e of r)s.delete(e);return s}#fe(t){let r=t.response.raw.status,i=this.config.noSwap.map(e=>e+""),s=r+"";for(let r of[s,s.slice(0,2)+"x",s[0]+"xx"]){if(i.includes(r))return void(t.swap="none");let s=this.#E(t.sourceElement,"hx-status:"+r);if(s)return void e.merge(s,t)}}#_e(e,t){return new Promise(r=>{this.#m||=[],this.#m.push({task:e,resolve:r,ctx:t}),this.#x||this.#mt()})}async#mt(){if(0===this.#m.length||this.#x)return;this.#x=!0;let{task:e,resolve:t,ctx:r}=this.#m.shift();try{if(document.startViewTransition){let t={task:e,ctx:r};this.#L(r.sourceElement,"htmx:before:viewTransition",t),await document.startViewTransition(t.task).finished,this.#L(r.sourceElement,"htmx:after:viewTransition",t)}else await e()}catch(e){}finally{this.#x=!1,t(),this.#mt()}}#Qe(e,t){let r=["class","style","width","height"],i=t.querySelectorAll("[id]"),s=Object.fromEntries([...i].map(e=>[e.id,e])),n=e.querySelectorAll("[id]"),o=[];for(let e of n){let t=s[e.id];if(t?.tagName===e.tagName){let i=e.cloneNode(!1);for(let i of r)t.hasAttribute(i)?e.setAttribute(i,t.getAttribute(i)):e.removeAttribute(i);o.push(()=>{this.#Je(e,i)})}}return o}#Ue(e,t){e?.classList?.add?.(t)}#Xe(e,t){e?.classList?.remove?.(t),0===e?.classList?.length&&e.removeAttribute("class")}#Ge(e){return"string"==typeof e?this.find(e):e}#F(e){return this.config.metaCharacter?e.replace(/:/g,this.config.metaCharacter):e}}})();
;
(()=>{let e;function t(e){let t=htmx.config.metaCharacter||":",n=`[${CSS.escape("hx-ws"+t+e)}]`;return htmx.config.prefix&&(n+=`,[${CSS.escape(htmx.config.prefix+"ws"+t+e)}]`),n}function n(t){let n=e.HCON.parse(e.attributeValue(t,"hx-config")).ws||{};return{reconnect:!0,reconnectCodes:[1001,1005,1006,1011,1012,1013,1014],reconnectDelay:500,reconnectMaxDelay:6e4,reconnectMaxAttempts:1/0,reconnectJitter:.3,pauseOnBackground:!0,maxOutgoingMessagesQueueSize:100,...htmx.config.ws,...n}}function o(e){if(e.startsWith("ws://")||e.startsWith("wss://"))return e;if(e.startsWith("http://"))return"ws://"+e.slice(7);if(e.startsWith("https://"))return"wss://"+e.slice(8);let t="https:"===window.location.protocol?"wss:":"ws:",n=window.location.host;return e.startsWith("//")?t+e:e.startsWith("/")?t+"//"+n+e:t+"//"+n+window.location.pathname.substring(0,window.location.pathname.lastIndexOf("/")+1)+e}const r=new Set;function c(e,t){if(t.timer&&clearTimeout(t.timer),t.visibilityHandler&&document.removeEventListener("visibilitychange",t.visibilityHandler),t.abortController&&t.abortController.abort(),t.queue.length=0,t.socket)try{t.socket.readyState!==WebSocket.OPEN&&t.socket.readyState!==WebSocket.CONNECTING||t.socket.close()}catch(e){}e._htmx?.ws?.connection===t&&delete e._htmx.ws.connection,r.delete(t)}function i(t,n){let o=n.url;if(n.abortController&&n.abortController.abort(),n.socket){let e=n.socket;n.socket=null;try{e.readyState!==WebSocket.OPEN&&e.readyState!==WebSocket.CONNECTING||e.close()}catch(e){}}try{n.socket=new WebSocket(o,n.config?.protocols);let a=new AbortController;n.abortController=a;let l={signal:a.signal};n.socket.addEventListener("open",()=>{t.isConnected?(e.triggerHtmxEvent(t,"htmx:ws:after:connection",{connection:n}),n.attempt=0,function(e){for(;e.queue.length&&e.socket?.readyState===WebSocket.OPEN;){let t=e.queue.shift();s(e,t.element,t.message)}}(n)):c(t,n)},l),n.socket.addEventListener("message",o=>{n.receiving=n.receiving.then(()=>async function(t,n,o){let r=[],i={data:o.data,text(){let e=i.data;return"string"==typeof e?Promise.resolve(e):e instanceof Blob?e.text():Promise.resolve((new TextDecoder).decode(e))},json:()=>i.text().then(JSON.parse)};if(!t.isConnected)return void c(t,n);let s={connection:n,message:i,cancelled:!1,waitUntil(e){r.push(Promise.resolve(e))}},a=e.triggerHtmxEvent(t,"htmx:ws:before:message:incoming",s);if(await Promise.all(r),!a||s.cancelled)return;let l,u=null;if("string"==typeof i.data)try{u=await i.json()}catch(e){l=await i.text()}u&&(void 0!==u.content?l=u.content:void 0!==u.payload&&(l=u.payload,n._payloadWarnFired||(console.warn("htmx: [hx-ws] json.payload is deprecated; use json.content instead"),n._payloadWarnFired=!0)));if(null!=l){let n=u?.target||e.attributeValue(t,"hx-target"),o=u?.swap||e.attributeValue(t,"hx-swap")||htmx.config.defaultSwap;/(?:^|\s)swapEmpty(?::(?:true|false))?(?=\s|$)/.test(o)||(o+=" swapEmpty:false"),await htmx.swap({sourceElement:t,target:n||t,swap:o,select:u?.select??e.attributeValue(t,"hx-select"),selectOOB:e.attributeValue(t,"hx-select-oob"),text:l,transition:!1})}e.triggerHtmxEvent(t,"htmx:ws:after:message:incoming",{connection:n,message:i})}(t,n,o)).catch(o=>{t.isConnected&&e.triggerHtmxEvent(t,"htmx:ws:error",{connection:n,error:o})})},l),n.socket.addEventListener("close",o=>{if(o.target!==n.socket)return;if(t.isConnected&&e.triggerHtmxEvent(t,"htmx:ws:close",{connection:n,reason:"closed",code:o.code}),!r.has(n))return;let s=n.config;s.pauseOnBackground&&document.hidden||(s.reconnect&&s.reconnectCodes.includes(o.code)&&t.isConnected?function(t,n){let o=n.config;n.attempt++;let r=n.attempt;if(!o.reconnect||r>o.reconnectMaxAttempts)return void c(t,n);let s=htmx.parseInterval(o.reconnectDelay)??o.reconnectDelay,a=htmx.parseInterval(o.reconnectMaxDelay)??o.reconnectMaxDelay,l=Math.min(s*Math.pow(2,r-1),a);if(o.reconnectJitter>0){let e=l*o.reconnectJitter;l=Math.max(0,l+(2*Math.random()-1)*e)}if(!t.isConnected)return void c(t,n);if(n.cancelled=!1,!e.triggerHtmxEvent(t,"htmx:ws:before:connection",{connection:n})||n.cancelled)return e.triggerHtmxEvent(t,"htmx:ws:close",{connection:n,reason:"cancelled",code:null}),void c(t,n);n.timer=setTimeout(()=>{t.isConnected?i(t,n):c(t,n)},l)}(t,n):c(t,n))},l),n.socket.addEventListener("error",o=>{t.isConnected&&e.triggerHtmxEvent(t,"htmx:ws:error",{connection:n,error:o})},l)}catch(o){t.isConnected&&e.triggerHtmxEvent(t,"htmx:ws:error",{connection:n,error:o})}}function s(t,n,o){try{t.socket.send(o.data),e.triggerHtmxEvent(n,"htmx:ws:after:message:outgoing",{connection:t,message:o})}catch(o){e.triggerHtmxEvent(n,"htmx:ws:error",{connection:t,error:o})}}function a(t){if(e.htmxProp(t).ws??={},t._htmx.ws.initialized)return;let c=e.attributeValue(t,"hx-ws:connect");if(!c)return;let s=e.attributeValue(t,"hx-trigger")||"load";e.onTrigger(t,s,()=>{!function(t,c){if(c._htmx.ws.connection)return c._htmx.ws.connection;let s={url:o(t),config:n(c),socket:null,attempt:0,timer:null,queue:[],receiving:Promise.resolve(),sending:Promise.resolve(),abortController:null,visibilityHandler:null,cancelled:!1};!e.triggerHtmxEvent(c,"htmx:ws:before:connection",{connection:s})||s.cancelled?e.triggerHtmxEvent(c,"htmx:ws:close",{connection:s,reason:"cancelled",code:null}):(c._htmx.ws.connection=s,r.add(s),i(c,s),s.config.pauseOnBackground&&(s.visibilityHandler=()=>{document.hidden?s.socket&&s.socket.readyState===WebSocket.OPEN&&s.socket.close():s.socket&&s.socket.readyState!==WebSocket.CLOSED||(s.attempt=0,i(c,s))},document.addEventListener("visibilitychange",s.visibilityHandler)))}(c,t)}),t._htmx.ws.initialized=!0}function l(n){if(e.htmxProp(n).ws??={},n._htmx.ws.sendInitialized)return;let c=e.attributeValue(n,"hx-trigger");c||(c=n.matches("form")?"submit":n.matches("input:not([type=button]):not([type=submit]),select,textarea")?"change":"click"),e.onTrigger(n,c,async c=>{n.matches("form")&&"submit"===c.type&&c.preventDefault(),await async function(n,c){let i=n.closest(t("connect")),a=i&&e.attributeValue(i,"hx-ws:connect");if(!a)return void e.triggerHtmxEvent(n,"htmx:ws:error",{url:null,error:"No WebSocket connection found for element"});let l=o(a),u=i._htmx?.ws?.connection;if(!u)return void e.triggerHtmxEvent(n,"htmx:ws:error",{url:l,error:"Connection not open"});let d={...e.createRequestContext(n,c).request.headers};delete d.Accept;let m=n.form||n.closest("form"),h=e.collectFormData(n,m,c.submitter),g={};for(let[e,t]of h)g[e]=e in g?[].concat(g[e],t):t;let x=e.getAttributeObject(n,"hx-vals",e=>Object.assign(g,e)),w=u.sending.then(async()=>{x&&await x,delete g.headers;let t=[],o={headers:d,values:g,data:void 0},c={connection:u,message:o,cancelled:!1,waitUntil(e){t.push(Promise.resolve(e))}},i=e.triggerHtmxEvent(n,"htmx:ws:before:message:outgoing",c);try{if(await Promise.all(t),!i||c.cancelled)return;if(o.data??=JSON.stringify({...o.values,headers:o.headers}),!r.has(u))return void e.triggerHtmxEvent(n,"htmx:ws:error",{connection:u,error:"Connection closed"});u.socket?.readyState===WebSocket.OPEN?s(u,n,o):u.queue.length>=u.config.maxOutgoingMessagesQueueSize?e.triggerHtmxEvent(n,"htmx:ws:error",{connection:u,error:"Outgoing messages queue is full"}):u.queue.push({element:n,message:o})}catch(t){e.triggerHtmxEvent(n,"htmx:ws:error",{connection:u,error:t})}});u.sending=w.catch(()=>{}),await w}(n,c)}),n._htmx.ws.sendInitialized=!0}htmx.registerExtension("ws",{init:t=>{e=t,htmx.config.ws||(htmx.config.ws={})},htmx_after_process:n=>{const o=t=>{!function(e){if(e.hasAttribute("ws-connect")||e.hasAttribute("ws-send")){if(console.warn("htmx: [hx-ws] legacy attributes ws-connect and ws-send are deprecated; use hx-ws:connect and hx-ws:send instead"),e.hasAttribute("ws-connect")){let t=e.getAttribute("ws-connect"),n=htmx.config.metaCharacter||":",o=(htmx.config.prefix||"hx-")+"ws"+n+"connect";e.hasAttribute(o)||e.setAttribute(o,t)}if(e.hasAttribute("ws-send")){let t=htmx.config.metaCharacter||":",n=(htmx.config.prefix||"hx-")+"ws"+t+"send";e.hasAttribute(n)||e.setAttribute(n,"")}}}(t);let n=e.attributeValue(t,"hx-ws:send");null!=e.attributeValue(t,"hx-ws:connect")&&a(t),null!=n&&l(t)};o(n);let r=t("connect")+","+t("send")+",[ws-connect],[ws-send]";n.querySelectorAll(r).forEach(o)},htmx_before_cleanup:t=>{!function(t){let n=t._htmx?.ws?.connection;n&&(e.triggerHtmxEvent(t,"htmx:ws:close",{connection:n,reason:"removed",code:null}),c(t,n))}(t)}}),"undefined"!=typeof window&&window.htmx&&window.addEventListener("pagehide",()=>{r.forEach(e=>{e.socket&&e.socket.close(1e3,"page navigating away")})})})();
;
/* What every page needs: words for the ear, toasts, dialogs, copying, the theme. Behaviour hangs on data attributes:

   data-copy[="id"]        copy the code block around the button, or the text of the element with that id
   data-dialog-open="id"   show the dialog with that id;  data-dialog-close  closes the one around the button
   data-fill="id"          put the button's words into the field with that id
   data-one-line           a text area for one line that grows with it; Enter goes on to the next field
   data-paths="name"       a choice of a folder: the paths of its files are sent with them, under that name
   data-theme-choice       a radio button whose value is system, light or dark
   data-time-zone          a hidden field that tells the server where the browser is
   data-clears="id"        an area with fields; when something in it is typed, the element with that id is emptied
   data-auto-submit        a form that is sent when something in it changes
   data-until="ISO time"   <time> that counts down, in the words of data-in (with %s) and data-now
   data-since="ISO time"   <time> that counts up;  .step[data-news="ISO time"] turns stale after a minute
   data-strip              a list that scrolls, such as a strip on a phone: its current item is scrolled into view
   Words come from #status, which the server fills in the user's language. */
(() => {
  const status = () => document.getElementById("status");
  const word = (name) => status()?.dataset[name] ?? "";

  function say(text) {
    const region = status();
    if (!region) return;
    region.textContent = "";
    setTimeout(() => { region.textContent = text; }, 50);
  }

  function toast(text, { url, word } = {}) {
    const region = document.getElementById("toasts");
    if (!region || [...region.children].some((old) => old.firstElementChild.textContent === text)) return;
    const line = document.createElement("div");
    line.className = "toast";
    line.append(Object.assign(document.createElement("span"), { textContent: text }));
    if (url) line.append(Object.assign(document.createElement("a"), { className: "btn", href: url, textContent: word }));
    region.append(line);
  }

  /* A toast goes after eight seconds, but not while someone reads or reaches for it. */
  setInterval(() => {
    for (const line of document.querySelectorAll("#toasts > .toast")) {
      if (line.matches(":hover, :focus-within")) continue;
      line.dataset.age = Number(line.dataset.age ?? 0) + 1;
      if (line.dataset.age > 8) line.remove();
    }
  }, 1000);

  async function copy(button) {
    const source = button.dataset.copy
      ? document.getElementById(button.dataset.copy)
      : button.closest(".code")?.querySelector("pre");
    if (!source) return;
    try {
      await navigator.clipboard.writeText(source.dataset.text ?? source.textContent);
      say(word("copied"));
      button.dataset.done = "";
      setTimeout(() => delete button.dataset.done, 1500);
    } catch {
      toast(word("notCopied"));
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-copy], [data-fill], [data-dialog-open], [data-dialog-close]");
    if (!button) return;
    if (button.dataset.fill) return fill(document.getElementById(button.dataset.fill), button.textContent);
    if ("copy" in button.dataset) copy(button);
    else if (button.dataset.dialogOpen) openDialog(event, button.dataset.dialogOpen);
    else button.closest("dialog")?.close();
  });

  function fill(field, text) {
    field.value = text.trim();
    field.focus();
  }

  /* Browsers without field-sizing grow a text area by rows. */
  function fit(text) {
    if (CSS.supports("field-sizing", "content")) return;
    text.rows = 1;
    while (text.scrollHeight > text.clientHeight + 2 && text.rows < 12) text.rows += 1;
  }
  document.addEventListener("input", (event) => {
    if ("oneLine" in event.target.dataset) fit(event.target);
  });
  document.addEventListener("keydown", (event) => {
    const text = event.target;
    if (event.key !== "Enter" || event.isComposing || !("oneLine" in text.dataset)) return;
    event.preventDefault();
    const fields = [...text.form.elements];
    fields[fields.indexOf(text) + 1]?.focus();
  });

  /* Without script a link with data-dialog-open leads to a page that does the same. */
  function openDialog(event, id) {
    const dialog = document.getElementById(id);
    if (!dialog) return;
    event.preventDefault();
    for (const sheet of document.querySelectorAll(":popover-open")) sheet.hidePopover();
    dialog.showModal();
  }

  document.addEventListener("change", (event) => {
    const field = event.target;
    if ("themeChoice" in field.dataset) {
      document.documentElement.dataset.theme = field.value;
      document.cookie = `theme=${field.value}; path=/; max-age=31536000; samesite=lax`;
    }
    field.form?.matches("[data-auto-submit]") && field.form.requestSubmit();
  });

  /* What was said of other values does not stand beside these. */
  document.addEventListener("input", (event) => {
    const area = event.target.closest("[data-clears]");
    if (area) document.getElementById(area.dataset.clears)?.replaceChildren();
  });

  document.addEventListener("formdata", (event) => {
    for (const { dataset, files } of event.target.querySelectorAll("[data-paths]")) {
      for (const file of files) event.formData.append(dataset.paths, file.webkitRelativePath || file.name);
    }
  });

  /* Confirmation without window.confirm: the first press asks, the second does. */
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!button?.dataset.sure || "asked" in button.dataset) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const before = [...button.childNodes]; // with its icon, and what only screen readers hear
    button.dataset.asked = "";
    button.replaceChildren(button.dataset.sure);
    say(button.dataset.sure);
    setTimeout(() => {
      if (!("asked" in button.dataset)) return;
      button.replaceChildren(...before);
      delete button.dataset.asked;
    }, 6000);
  }, true);

  function centre(strip) {
    const [whole, item] = [strip, strip.querySelector("[aria-current]")].map((each) => each?.getBoundingClientRect());
    if (!item) return;
    strip.scrollLeft += item.left + item.width / 2 - whole.left - whole.width / 2;
    if (item.top < whole.top || item.bottom > whole.bottom) strip.scrollTop += item.top - whole.top - whole.height / 2;
  }

  const minutes = (seconds) => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;

  function tick() {
    const now = Date.now();
    for (const clock of document.querySelectorAll("time[data-since]")) {
      clock.textContent = minutes(Math.max(0, Math.floor((now - Date.parse(clock.dataset.since)) / 1000)));
    }
    for (const clock of document.querySelectorAll("time[data-until]")) {
      const seconds = Math.ceil((Date.parse(clock.dataset.until) - now) / 1000);
      clock.textContent = seconds > 0 ? clock.dataset.in.replace("%s", minutes(seconds)) : clock.dataset.now;
    }
    for (const step of document.querySelectorAll(".step[data-news][data-state=running]")) {
      step.toggleAttribute("data-stale", now - Date.parse(step.dataset.news) > 60_000);
    }
  }
  setInterval(tick, 1000);
  document.addEventListener("DOMContentLoaded", () => {
    tick();
    document.querySelectorAll("[data-one-line]").forEach(fit);
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    for (const field of document.querySelectorAll("[data-time-zone]")) field.value = zone;
    for (const strip of document.querySelectorAll("[data-strip]")) centre(strip);
  });
  document.addEventListener("htmx:after:swap", tick);

  /* A failed request leaves the page as it is and says so. */
  document.addEventListener("htmx:response:error", (event) => {
    if (event.detail.ctx.response.status >= 500) toast(word("failed"));
  });
  document.addEventListener("htmx:error", (event) => {
    if (event.detail.ctx) toast(word("unsent"));
  });

  window.waymark = { say, toast, word, fit };
})();

;
/* The composer: <form class="composer" data-composer="thread id"> with <textarea name="content"> and a hidden
   client_message_id. Enter sends, Shift Enter breaks the line. What was typed is kept in this browser until the server
   has taken it, and a second try carries the same id, so that it cannot be stored twice. */
(() => {
  const key = (form) => `draft:${form.dataset.composer}`;
  const parts = (form) => [form.querySelector("textarea"), form.querySelector("[name=client_message_id]")];
  const hasFiles = (form) => Boolean(form.querySelector("input[type=file]")?.files.length);
  const composerOf = (target) => target?.closest?.("form[data-composer]");

  /* randomUUID exists only in secure contexts; a phone in the same network uses plain http. */
  function uuid() {
    if (crypto.randomUUID) return crypto.randomUUID();
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  }

  function load(form) {
    if ("ready" in form.dataset) return;
    form.dataset.ready = "";
    const [text, id] = parts(form);
    const draft = read(form);
    if (draft && !text.value) text.value = draft.text;
    if (id) id.value = draft?.id || id.value || uuid();
    waymark.fit(text);
  }

  function read(form) {
    try { return JSON.parse(localStorage.getItem(key(form))); } catch { return null; }
  }

  function save(form) {
    const [text, id] = parts(form);
    try {
      if (text.value) localStorage.setItem(key(form), JSON.stringify({ text: text.value, id: id?.value }));
      else localStorage.removeItem(key(form));
    } catch { /* storage may be off or full: the draft lives in the page only */ }
  }

  function reset(form) {
    const [text, id] = parts(form);
    text.value = "";
    if (id) id.value = uuid();
    save(form);
    waymark.fit(text);
  }

  document.addEventListener("input", (event) => {
    const form = composerOf(event.target);
    if (!form) return;
    save(form);
    waymark.fit(event.target);
  });

  document.addEventListener("keydown", (event) => {
    const form = composerOf(event.target);
    if (form && event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target.matches("textarea")) {
      event.preventDefault();
      if (event.target.value.trim() || hasFiles(form)) form.requestSubmit();
    }
    if (event.key === "Escape" && !event.defaultPrevented && !document.querySelector("dialog[open], :popover-open")) {
      document.querySelector("[data-stop]:not(:disabled)")?.click();
    }
  });

  document.addEventListener("submit", (event) => {
    const form = composerOf(event.target);
    if (!form) return;
    if (!parts(form)[0].value.trim() && !hasFiles(form)) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    if (!form.matches("[hx-post]")) save(form);
  }, true);

  /* Fired only for a request that leaves: one that is dropped, because another is on its way, has sent nothing. */
  document.addEventListener("htmx:before:request", (event) => {
    const form = composerOf(event.detail.ctx.sourceElement);
    if (form) form.dataset.sent = parts(form)[0].value;
  });

  /* Only what was sent is cleared: words typed while it was on its way stay. */
  document.addEventListener("htmx:after:request", (event) => {
    const form = composerOf(event.detail.ctx.sourceElement);
    if (!form || event.detail.ctx.response.status >= 300) return;
    const [text] = parts(form);
    const rest = text.value === form.dataset.sent ? "" : text.value;
    reset(form);
    if (rest) { text.value = rest; save(form); }
  });

  /* A form that went by a full page load comes back empty; the address says that the message was taken. */
  function settle() {
    const taken = new URLSearchParams(location.search).get("sent");
    for (const form of document.querySelectorAll("form[data-composer]")) {
      if (taken && read(form)?.id === taken) localStorage.removeItem(key(form));
      load(form);
    }
  }
  document.addEventListener("DOMContentLoaded", settle);
  document.addEventListener("htmx:after:swap", settle);
  if (document.readyState !== "loading") settle();
})();

;
/* The live connection: <div id="live" hx-ws:connect="/ws/…" data-last-seq="…">. Frames are {seq, content, swap: "none"}
   and are in order; a frame that was seen already is dropped. After each connection the page says where it stands and
   the server sends what is missing, or {"type": "reload"} when it cannot. {"type": "wire", "up": false} says that the
   server itself is cut off from what happens, until the same says true. Close code 4401 means signed out.
   Once it is back, `live-again` has the page read what changed elsewhere meanwhile, of which nobody was told.
   While the connection is away, or cut off, for more than 20 s, elements with an id and data-poll are read again every 5 s: from its
   address, which answers with partials, or when it is empty from the page itself. */
(() => {
  const SIGNED_OUT = 4401, AWAY = 20_000, EVERY = 5_000;
  const source = () => document.querySelector("[data-last-seq]");
  let connected = false;
  let lostAt = null;
  let timer = null;

  function show(state) {
    for (const pill of document.querySelectorAll(".live")) {
      pill.hidden = false;
      pill.dataset.state = state;
      pill.textContent = waymark.word(state);
    }
  }

  /* Event ids are "milliseconds-number" or plain numbers; both grow. */
  function isNewer(seq, last) {
    if (!last) return true;
    const [a, b = 0] = String(seq).split("-").map(Number);
    const [c, d = 0] = String(last).split("-").map(Number);
    return a > c || (a === c && b > d);
  }

  function parse(data) {
    try { return JSON.parse(data); } catch { return null; }
  }

  function found() {
    connected = true;
    if (lostAt) document.dispatchEvent(new Event("live-again"));
    lostAt = null;
    clearInterval(timer);
    timer = null;
    show("online");
  }

  function lost() {
    connected = false;
    lostAt ??= Date.now();
    timer ??= setInterval(poll, EVERY);
    show(navigator.onLine ? "reconnecting" : "offline");
  }

  document.addEventListener("htmx:ws:after:connection", (event) => {
    found();
    const after = source()?.dataset.lastSeq ?? "";
    event.detail.connection.socket.send(JSON.stringify({ type: "hello", after }));
  });

  document.addEventListener("htmx:ws:close", (event) => {
    const { code, reason } = event.detail;
    connected = false;
    if (code === SIGNED_OUT) location.reload();
    else if (reason !== "removed") lost();
  });

  addEventListener("offline", () => show("offline"));
  addEventListener("online", () => show(lostAt ? "reconnecting" : "online"));

  document.addEventListener("htmx:ws:before:message:incoming", (event) => {
    const frame = parse(event.detail.message.data);
    if (frame?.type === "reload") {
      event.preventDefault();
      location.reload();
    } else if (frame?.type === "wire") {
      event.preventDefault();
      frame.up ? found() : lost();
    } else if (frame?.seq && !isNewer(frame.seq, source()?.dataset.lastSeq)) {
      event.preventDefault();
    }
  });

  document.addEventListener("htmx:ws:after:message:incoming", (event) => {
    const frame = parse(event.detail.message.data);
    if (frame?.seq && source()) source().dataset.lastSeq = frame.seq;
    if (frame?.say) waymark.say(frame.say);
  });

  /* While the socket writes the page, the answer to a press of a button must not overwrite what is newer. */
  document.addEventListener("htmx:config:request", (event) => {
    if (connected) event.detail.ctx.request.headers["X-Live"] = "1";
  });

  function poll() {
    if (!lostAt || Date.now() - lostAt < AWAY || document.hidden || !navigator.onLine) return;
    for (const part of document.querySelectorAll("[data-poll][id]")) {
      const whole = { source: part, target: part, select: `#${part.id}`, swap: "outerMorph" };
      if (part.dataset.poll) htmx.ajax("GET", part.dataset.poll, { source: part, target: part, swap: "none" });
      else htmx.ajax("GET", location.pathname + location.search, whole);
    }
  }
})();

;
/* Reading position: an element with data-stick is a growing conversation in the page's own scroll. The view follows
   its end only when the reader was within 80 px of it; else the button .to-end counts what is new. */
(() => {
  const NEAR = 80;
  const COUNTED = ".turn, .step, .say";
  const page = document.scrollingElement;
  let following = true;
  let fresh = 0;

  const gap = () => page.scrollHeight - page.scrollTop - innerHeight;
  const button = () => document.querySelector(".to-end");

  function end() {
    page.scrollTop = page.scrollHeight;
    following = true;
    show(0);
  }

  function show(count) {
    fresh = count;
    const holder = button();
    if (!holder) return;
    holder.hidden = following;
    const label = holder.querySelector("[data-count]");
    if (label) label.textContent = count ? label.dataset.count.replace("%d", count) : label.dataset.none;
  }

  function watch(thread) {
    if (!thread || "watched" in thread.dataset) return;
    thread.dataset.watched = "";
    new ResizeObserver(() => { following ? end() : show(fresh); }).observe(thread);
    new MutationObserver((changes) => {
      const added = changes.flatMap((change) => [...change.addedNodes]);
      const count = added.filter((node) => node.matches?.(COUNTED)).length;
      if (count && !following) show(fresh + count);
    }).observe(thread, { childList: true, subtree: true });
    if (location.hash) following = false;
    else end();
  }

  addEventListener("scroll", () => {
    if (!document.querySelector("[data-stick]")) return;
    following = gap() < NEAR;
    show(following ? 0 : fresh);
  }, { passive: true });

  document.addEventListener("click", (event) => {
    if (event.target.closest?.(".to-end .btn")) end();
  });

  /* Sending is asking to see the answer. */
  document.addEventListener("submit", (event) => {
    if (event.target.matches("form[data-composer]")) following = true;
  });

  /* Toasts stand above the dock, however high what is written makes it. */
  const dock = new ResizeObserver(([{ borderBoxSize: [size] }]) => {
    document.body.style.setProperty("--dock", `${size.blockSize}px`);
  });

  function start() {
    watch(document.querySelector("[data-stick]"));
    for (const each of document.querySelectorAll(".dock")) dock.observe(each);
  }
  document.addEventListener("DOMContentLoaded", start);
  document.addEventListener("htmx:after:swap", start);
  if (document.readyState !== "loading") start();
})();

;
/* Files in the composer: chosen, pasted, or dropped anywhere on the page. <input type="file" name="files"> is in
   the form; <ul data-attached> shows what will be sent, with its limits and words in data attributes, and
   <template data-attached-item> is one of its lines. What was chosen stays until the server has taken it. */
(() => {
  const SIDE = 96;
  const composerOf = (target) => target?.closest?.("form[data-composer]");
  const inputOf = (form) => form?.querySelector("input[type=file]");
  const listOf = (form) => form.querySelector("[data-attached]");
  const chosen = new WeakMap();
  const filesOf = (form) => chosen.get(form) ?? [];

  /* As Django says it, so that a file has one size before and after it was sent. */
  function size(bytes) {
    const steps = [["byte", "long", 0], ["kilobyte", "short", 1], ["megabyte", "short", 1]];
    const step = bytes < 1024 ? 0 : bytes < 1024 ** 2 ? 1 : 2, [unit, unitDisplay, digits] = steps[step];
    const style = { style: "unit", unit, unitDisplay, minimumFractionDigits: digits, maximumFractionDigits: digits };
    const words = new Intl.NumberFormat(document.documentElement.lang || "en", style).format(bytes / 1024 ** step);
    return words.replace("kB", "KB");
  }

  function set(form, files) {
    const data = new DataTransfer();
    files.forEach((file) => data.items.add(file));
    chosen.set(form, files);
    inputOf(form).files = data.files;
    form.querySelector("textarea").required = !files.length;
    draw(form, files);
  }

  function draw(form, files) {
    const list = listOf(form), item = form.querySelector("[data-attached-item]");
    list.replaceChildren(...files.map((file) => line(form, list, item.content.firstElementChild.cloneNode(true), file)));
    list.hidden = !files.length;
  }

  function line(form, list, row, file) {
    const [name, bytes] = row.querySelectorAll("span"), remove = row.querySelector("button");
    name.textContent = file.name;
    bytes.textContent = size(file.size);
    remove.setAttribute("aria-label", list.dataset.remove.replace("%s", file.name));
    remove.addEventListener("click", () => {
      set(form, filesOf(form).filter((other) => other !== file));
      form.querySelector("textarea").focus();
    });
    if (/^image\/(png|jpeg|webp|gif)$/.test(file.type)) preview(row, file);
    return row;
  }

  async function preview(row, file) {
    try {
      const picture = await createImageBitmap(file, { resizeHeight: SIDE });
      const canvas = Object.assign(document.createElement("canvas"), { width: picture.width, height: picture.height });
      canvas.getContext("2d").drawImage(picture, 0, 0);
      row.querySelector(".icon").replaceWith(canvas);
    } catch { /* not a picture after all: its line says enough */ }
  }

  /* The first reason why these files cannot be sent, in words; empty when there is none. */
  function problem(list, files) {
    const { most, bytes, bytesTogether, many, large, largeTogether } = list.dataset;
    const over = files.find((file) => file.size > Number(bytes));
    if (files.length > Number(most)) return many.replace("%n", most);
    if (over) return large.replace("%s", () => over.name).replace("%n", size(Number(bytes)));
    const sum = files.reduce((total, file) => total + file.size, 0);
    return sum > Number(bytesTogether) ? largeTogether.replace("%n", size(Number(bytesTogether))) : "";
  }

  function add(form, more) {
    const files = [...filesOf(form), ...more], why = problem(listOf(form), files);
    if (why) waymark.toast(why);
    set(form, why ? filesOf(form) : files);
    form.querySelector("textarea").focus();
  }

  document.addEventListener("change", (event) => {
    const form = composerOf(event.target);
    if (form && event.target === inputOf(form)) add(form, event.target.files);
  });

  /* What is copied from a table or a letter is text with a picture of it, and the text is meant; a copied file has only
     its name as text, a copied picture only HTML. */
  document.addEventListener("paste", (event) => {
    const form = composerOf(event.target), { files, types } = event.clipboardData;
    if (!inputOf(form) || !files.length || ["text/plain", "text/html"].every((type) => types.includes(type))) return;
    event.preventDefault();
    add(form, files);
  });

  const target = (event) => {
    const form = document.querySelector(".thread form[data-composer]");
    return inputOf(form) && event.dataTransfer.types.includes("Files") ? form : null;
  };
  const mark = (form) => document.querySelectorAll("form[data-composer]")
    .forEach((each) => each.toggleAttribute("data-drop", each === form));

  document.addEventListener("dragover", (event) => {
    const form = target(event);
    if (form) event.preventDefault();
    mark(form);
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) mark(null); });
  document.addEventListener("drop", (event) => {
    const form = target(event);
    mark(null);
    if (!form) return;
    event.preventDefault();
    add(form, event.dataTransfer.files);
  });

  /* A browser that comes back to a page may have kept what was chosen on it. */
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-composer]")) {
      if (inputOf(form)?.files.length && !filesOf(form).length) add(form, inputOf(form).files);
    }
  });

  /* fetch() cannot say how far an upload has come. */
  function uploading(bar) {
    return (address, request) => new Promise((resolve, reject) => {
      const call = new XMLHttpRequest();
      call.open(request.method, address);
      for (const [name, value] of Object.entries(request.headers)) call.setRequestHeader(name, value);
      call.upload.onprogress = (event) => { bar.value = event.loaded / event.total; };
      call.onload = () => {
        const lines = call.getAllResponseHeaders().trim().split(/\r?\n/);
        const headers = lines.map((line) => /^([^:]+): ?(.*)$/.exec(line)?.slice(1)).filter(Boolean);
        resolve(new Response(call.responseText || null, { status: call.status, headers }));
      };
      call.onerror = () => reject(new TypeError("the connection was lost"));
      call.onabort = () => reject(new DOMException("stopped", "AbortError"));
      request.signal?.addEventListener("abort", () => call.abort());
      call.send(request.body);
    });
  }

  document.addEventListener("htmx:before:request", (event) => {
    const form = composerOf(event.detail.ctx.sourceElement), files = form ? filesOf(form) : [];
    if (!files.length) return;
    const bar = Object.assign(document.createElement("progress"), { value: 0, ariaLabel: listOf(form).dataset.sending });
    listOf(form).append(bar);
    form.attaching = files;
    event.detail.ctx.fetch = uploading(bar);
  });

  /* Only what was sent is cleared, and only when it was taken. */
  document.addEventListener("htmx:finally:request", (event) => {
    const form = composerOf(event.detail.ctx.sourceElement);
    if (!form?.attaching) return;
    const taken = event.detail.ctx.response?.status < 300 ? form.attaching : [];
    delete form.attaching;
    set(form, filesOf(form).filter((file) => !taken.includes(file)));
  });
})();

;
/* The inbox from the keyboard. Keys work while a card has the focus, so that speech and stray typing decide nothing
   (WCAG 2.1.4); the first card, or the one of the address, has it when the page is opened with a mouse or a keyboard at
   hand.

   data-keys    a list of cards: J and K move
   data-key     inside a card: the letter that presses the button, or unfolds the form and goes into it
   Escape leaves the form and folds it up. */
(() => {
  const cards = () => [...document.querySelectorAll("[data-keys] > article")];

  function move(card, by) {
    const all = cards();
    all[all.indexOf(card) + by]?.focus();
  }

  function press(button) {
    button.click();
    const form = button.parentElement;
    if (form.matches("details[open]")) form.querySelector("textarea, input")?.focus();
  }

  /* What was typed into the form stays there. */
  function leave(card) {
    card.querySelector("details[open]")?.removeAttribute("open");
    card.focus();
  }

  document.addEventListener("keydown", (event) => {
    const card = event.target.closest?.("[data-keys] > article");
    if (!card || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") return leave(card);
    if (event.target.matches("input, textarea, select")) return;
    const letter = event.key.toLowerCase();
    const button = card.querySelector(`[data-key="${CSS.escape(letter)}"]`);
    if (!button && letter !== "j" && letter !== "k") return;
    event.preventDefault();
    if (button) button.checkVisibility() && press(button);
    else move(card, letter === "j" ? 1 : -1);
  });

  document.addEventListener("DOMContentLoaded", () => {
    if (matchMedia("(pointer: fine)").matches) (cards().find((card) => card.matches(":target")) ?? cards()[0])?.focus({ preventScroll: true });
  });
})();

;
/* What comes up elsewhere, and telling the browser of it.

   #looking             a form: while somebody has the page before their eyes its address is posted every half minute,
                        so that they are told of nothing that they see. The answer says how many things wait, which
                        stands in the title and on the icon, and what came up on other pages, which is toasted once in
                        all windows, and as one when it is much. Its data-open is the word for the way there. With the
                        first post a browser that is told says by which address it is pushed to, and the answer whether
                        the server knows another, so that the service worker renews it.
   form[data-push-key]  tells this browser; shown where that is possible, else #push-unfit. #push-denied says no.
   form[data-push-off]  ends that */
(() => {
  const EVERY = 30_000, KEPT = 50, APART = 3, TOLD = "waymark-told";
  const title = document.title;

  function told() {
    try { return JSON.parse(localStorage.getItem(TOLD)) ?? []; } catch { return []; }
  }

  function isNew(id) {
    const before = told();
    if (before.includes(id)) return false;
    try { localStorage.setItem(TOLD, JSON.stringify([...before, id].slice(-KEPT))); } catch { /* told in each window */ }
    return true;
  }

  async function worker() {
    return await navigator.serviceWorker?.getRegistration("/");
  }

  let compared = false;

  async function withPush(body) {
    if (compared) return;
    compared = true;
    const { pushManager } = await worker() ?? {}; // there is none where this was never switched on
    if (await pushManager?.permissionState({ userVisibleOnly: true }) !== "granted") return;
    body.set("push", (await pushManager.getSubscription())?.endpoint ?? "");
  }

  async function look() {
    const form = document.getElementById("looking");
    if (!form || document.hidden || !navigator.onLine) return;
    const body = new FormData(form);
    body.set("path", location.pathname);
    await withPush(body).catch(() => {});
    const answer = await fetch(form.action, { method: "POST", body, redirect: "error" }).catch(() => null);
    if (!answer?.ok) return;
    const { waiting, notices, together, renew } = await answer.json();
    if (renew) (await worker())?.active?.postMessage("renew");
    document.title = waiting ? `(${waiting}) ${title}` : title;
    navigator.setAppBadge?.(waiting).catch(() => {});
    const fresh = notices.filter(({ id }) => isNew(id));
    for (const { text, url } of fresh.length > APART ? [together] : fresh) {
      waymark.toast(text, { url, word: form.dataset.open });
    }
  }

  addEventListener("DOMContentLoaded", look);
  document.addEventListener("visibilitychange", look);
  document.addEventListener("agents-changed", look);
  setInterval(look, EVERY);

  const form = () => document.querySelector("form[data-push-key]");
  const show = (id) => { document.getElementById(id).hidden = false; };

  document.addEventListener("DOMContentLoaded", () => {
    if (!form()) return;
    if ("serviceWorker" in navigator && "PushManager" in window && "Notification" in window) form().hidden = false;
    else show("push-unfit");
  });

  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (each) => each.charCodeAt(0));

  async function subscribed(key) {
    if (await Notification.requestPermission() !== "granted") return null;
    await navigator.serviceWorker.register("/sw.js");
    const { pushManager } = await navigator.serviceWorker.ready;
    await (await pushManager.getSubscription())?.unsubscribe(); // it may be for another key
    return pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(key) });
  }

  async function add(to) {
    const found = await subscribed(to.dataset.pushKey).catch(() => null);
    if (!found) return show("push-denied");
    to.elements.subscription.value = JSON.stringify(found);
    to.submit();
  }

  async function unsubscribed() {
    await (await (await worker())?.pushManager?.getSubscription())?.unsubscribe();
  }

  async function remove(from) {
    await unsubscribed().catch(() => {}); // the server tells this browser nothing any more, whatever it says
    from.submit();
  }

  document.addEventListener("submit", (event) => {
    const what = event.target.matches("[data-push-key]") ? add : event.target.matches("[data-push-off]") ? remove : null;
    if (!what) return;
    event.preventDefault();
    what(event.target);
  });
})();
