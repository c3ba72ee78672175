//! The fleet while a listing is read into it.

use slicewise_core::catalog::{Catalog, Model, Profile};
use slicewise_core::error::InputError;
use slicewise_core::fleet::{Gpu, Node, State, Usage};
use slicewise_core::workload::Workload;

use super::{ImportError, ImportFault, Imported, Options};

/// What the readers fill.
pub(super) struct Draft<'a> {
    pub state: State,
    pub requests: Vec<Workload>,
    pub options: &'a Options,
    pub catalog: Catalog,
    notes: Vec<String>,
}

impl<'a> Draft<'a> {
    /// Begins with the state to merge into and with its models beside the catalog's.
    pub fn new(options: &'a Options, catalog: &Catalog) -> Result<Self, ImportError> {
        let state = options.into.clone().unwrap_or_default();
        let mut catalog = catalog.clone();
        for (i, model) in state.models.iter().enumerate() {
            let fault = |e: InputError| ImportFault::Malformed(e.within(&format!("models[{i}]")).to_string());
            catalog.add(model.clone()).map_err(fault)?;
        }
        let mut draft = Self { state, requests: Vec::new(), options, catalog, notes: Vec::new() };
        for node in &mut draft.state.nodes {
            // Readers address GPUs by index, so positions that stand for one are written out.
            for (gpu, position) in node.gpus.iter_mut().zip(0..) {
                gpu.index.get_or_insert(position);
            }
        }
        Ok(draft)
    }

    pub fn finish(self) -> Imported {
        Imported { state: self.state, requests: self.requests, notes: self.notes }
    }

    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// The node of listings that name none.
    pub fn node_name(&self) -> String {
        self.options.node.clone().unwrap_or_else(|| "node-0".to_owned())
    }

    /// Usage of an instance of which nothing more is known.
    pub fn usage(&self) -> Usage {
        if self.options.idle { Usage::Idle } else { Usage::Busy }
    }

    pub fn find_node(&self, name: &str) -> Option<&Node> {
        self.state.nodes.iter().find(|n| n.name == name)
    }

    pub fn find_gpu(&self, node: &str, index: u32) -> Option<&Gpu> {
        self.find_node(node)?.gpus.iter().find(|g| g.index == Some(index))
    }

    /// Changes a node, made first if it is new.
    pub fn with_node<T>(&mut self, name: &str, change: impl FnOnce(&mut Node) -> T) -> T {
        if let Some(node) = self.state.nodes.iter_mut().find(|n| n.name == name) {
            return change(node);
        }
        let mut node = Node { name: name.to_owned(), ..Node::default() };
        let result = change(&mut node);
        self.state.nodes.push(node);
        result
    }

    /// Changes a GPU, made first if it is new.
    pub fn with_gpu<T>(&mut self, node: &str, index: u32, change: impl FnOnce(&mut Gpu) -> T) -> T {
        self.with_node(node, |node| {
            if let Some(gpu) = node.gpus.iter_mut().find(|g| g.index == Some(index)) {
                return change(gpu);
            }
            let mut gpu = Gpu { index: Some(index), ..Gpu::default() };
            let result = change(&mut gpu);
            let at = node.gpus.iter().filter(|g| g.index < Some(index)).count();
            node.gpus.insert(at, gpu);
            result
        })
    }

    /// The model of a GPU as far as the state or the options know it.
    pub fn known_model(&self, node: &str, index: u32) -> Result<Option<Model>, ImportError> {
        match self.find_gpu(node, index).map(|g| g.model.as_str()).filter(|m| !m.is_empty()) {
            Some(name) => self.model(name).map(Some),
            None => self.given_model(),
        }
    }

    /// The model that the options name.
    pub fn given_model(&self) -> Result<Option<Model>, ImportError> {
        self.options.model.as_deref().map(|name| self.model(name)).transpose()
    }

    pub fn model(&self, name: &str) -> Result<Model, ImportError> {
        self.catalog.find(name).cloned().ok_or_else(|| ImportFault::ModelUnknown(name.to_owned()).into())
    }

    /// The id of the model of a product, else of the options, else of a plain one.
    pub fn product(&mut self, product: &str) -> Result<String, ImportError> {
        if self.catalog.find(product).is_none()
            && let Some(model) = self.given_model()?
        {
            return Ok(model.id);
        }
        self.product_or_plain(product)
    }

    /// The id of the model of a product; one that nobody knows is declared as a GPU that
    /// is used whole.
    pub fn product_or_plain(&mut self, product: &str) -> Result<String, ImportError> {
        let id = slug(product);
        if let Some(model) = self.catalog.find(product).or_else(|| self.catalog.find(&id)) {
            return Ok(model.id.clone());
        }
        let product_names = vec![product.to_owned()];
        self.declare(Model { id: id.clone(), name: Some(product.to_owned()), product_names, ..Model::default() })?;
        self.note(format!("`{product}` is not in the catalog: declared as `{id}`, for use as a whole"));
        Ok(id)
    }

    /// Adds a model to the state and the catalog.
    pub fn declare(&mut self, model: Model) -> Result<(), ImportError> {
        self.catalog.add(model.clone()).map_err(|e| ImportFault::Malformed(e.to_string()))?;
        self.state.models.push(model);
        Ok(())
    }
}

/// What a device offers: its own listing, else its model's.
pub(super) fn offered(gpu: Option<&Gpu>, model: &Model) -> Vec<Profile> {
    match gpu {
        Some(gpu) if !gpu.profiles.is_empty() => gpu.profiles.clone(),
        _ => model.profiles.clone(),
    }
}

/// `NVIDIA L40S` as `nvidia-l40s`.
fn slug(product: &str) -> String {
    let mut slug = String::new();
    for c in product.chars() {
        match c.is_ascii_alphanumeric() {
            true => slug.push(c.to_ascii_lowercase()),
            false if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            false => {}
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "gpu".to_owned() } else { slug.to_owned() }
}
